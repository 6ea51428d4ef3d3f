"""Conditions and levers: what the evidence says, what each change would do, and the decision both lead to."""
