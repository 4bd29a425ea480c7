"""The picture that an app reads its secret off."""

import io


def draw_qr_code(text: str) -> str:
    """Return an SVG to put into a page; black on white in every theme, because cameras want contrast."""
    import segno  # noqa: PLC0415 - few people set one up, and every process that logs people in would load it

    out = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        out,
        kind="svg",
        scale=5,
        border=4,
        dark="#000",
        light="#fff",
        xmldecl=False,
        svgclass="al-qr",
        nl=False,
    )
    return out.getvalue().decode()
