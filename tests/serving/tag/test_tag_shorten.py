"""Shortening the tag's source: the same program, with fewer characters."""

import shutil
import subprocess

import pytest

from adloom.serving.tag.shorten import shortened

NODE = shutil.which("node")


def test_comments_and_spaces_go() -> None:
    assert shortened("// Why.\nconst x = 1; /* and */\nf( x );\n") == "const x=1;f(x);"


def test_what_the_source_names_itself_gets_a_short_name() -> None:
    source = "const banner = (width, ...others) => { let total = width; return total + others.length; };"

    assert shortened(source) == "const o=(a,...e)=>{let t=a;return t+e.length};"


def test_what_may_be_a_property_keeps_its_name() -> None:
    source = "const width = 1; const box = { width }; const { height } = box; show(box.slug, height);"

    assert shortened(source) == "const width=1;const e={width};const{height}=e;show(e.slug,height);"


def test_constants_that_are_numbers_are_written_as_such() -> None:
    assert shortened("const SEEN_MS = 1000;\nconst NAME = 'Ad';\nwait(SEEN_MS, NAME);") == (
        "const e='Ad';wait(1000,e);"
    )


def test_what_others_have_named_keeps_its_name() -> None:
    assert shortened("const seen = new Map(); document.append(seen, document);") == (
        "const e=new Map();document.append(e,document);"
    )


def test_a_name_at_the_beginning_of_a_block_is_no_property() -> None:
    assert shortened("let count = 0; function add() { count = 1; }") == "let e=0;function t(){e=1}"


def test_texts_templates_and_patterns_stay_as_they_are() -> None:
    source = r"""const name = "a  b // c"; const p = /[/"]\/ +/g; const t = `x  ${name + `y ${p}`} // z`;"""

    assert shortened(source) == (
        r"""const e="a  b // c";const p=/[/"]\/ +/g;const t=`x  ${e+`y ${p}`} // z`;"""
    )


def test_a_line_ends_where_a_statement_may() -> None:
    assert shortened("function f() {}\nfunction g() {}\n") == "function f(){}\nfunction g(){}"
    assert shortened("a = b + +c - -d;\ncount++;") == "a=b+ +c- -d;count++;"


@pytest.mark.skipif(NODE is None, reason="there is no node on the path")
def test_the_short_program_does_what_the_long_one_does() -> None:
    source = """
    const words = ["one", "two", "three"];
    const counted = (list, by = 1) => list.map((word, number) => ({ word, number: number * by }));
    function sum({ number, ...rest }, before = 0) { const total = number + before; return { total, ...rest }; }
    let all = 0;
    for (const item of counted(words, 2)) { all += sum(item, all % 2 ? 1 : 0).total; }
    const [first, ...others] = words;
    const text = `${first}/${others.filter((one) => /^t.*e$/.test(one)).join(", ")} ${all ?? "none"}`;
    console.log(text, ((left, right) => left / right / 2)(8, 2));
    """
    assert NODE is not None

    said = [
        subprocess.run([NODE, "-e", one], capture_output=True, text=True, check=True).stdout
        for one in (source, shortened(source))
    ]

    assert said == ["one/three 6 2\n"] * 2
