"""What people have named things is text, in tooltips of charts too."""

from adloom.console.components.scatter import options_of

NAME = "<img src=x onerror=window.pwned=1>"


def test_a_tooltip_takes_the_name_of_a_point_for_text() -> None:
    options = options_of({"feed": [(9.0, 7.01, NAME)]}, across="eCPM", up="`${price}`")

    assert options["series"][0]["data"] == [[9.0, 7.01, NAME, 1]]
    assert options["tooltip"][":formatter"] == (
        '(one) => adloom.lines(one.value[2], "eCPM: " + adloom.number(one.value[0]), '
        '"`${price}`: " + adloom.number(one.value[1]), one.value[3] > 1 && `\u00d7 ${one.value[3]}`)'
    )
