"""Page → HTML: one file without any outside request, printing on A4; all words escaped by the template engine."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from ui import palette
from ui.sheet import glyphs
from ui.sheet.page import Page
from ui.sheet.svg import FONT

TEMPLATES = Path(__file__).parent / "templates"
FONT_FILES = {400: "NotoSansSC-Regular-gb2312.ttf", 700: "NotoSansSC-Bold-gb2312.ttf"}
SVG_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


@dataclass(frozen=True, kw_only=True)
class Face:
    """One weight of the font, cut to the signs used, as base64."""

    weight: int
    data: str


@lru_cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("sheet.html")


def page_to_html(page: Page) -> str:
    """The sheet as one HTML document. Only the two pictures, drawn here, are taken as markup."""
    text = json.dumps(asdict(page), ensure_ascii=False)
    faces = [
        Face(weight=weight, data=base64.b64encode(glyphs.subset_font(glyphs.FONTS / name, text)).decode())
        for weight, name in FONT_FILES.items()
    ]
    return _template().render(page=page, colour=palette, font=FONT, faces=faces, inline=_inline)


def _inline(svg: str) -> Markup:
    """A picture drawn here, where all its words were escaped; inside HTML the namespace goes without saying."""
    return Markup(svg.replace(SVG_NAMESPACE, ""))
