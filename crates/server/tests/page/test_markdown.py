"""Markdown of a model is drawn, and whatever it holds stays text."""

import pytest
from playwright.sync_api import expect

from standin import text
from test_chat import answers, ask, done

HOSTILE = """<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2"> <iframe src="http://evil.example/"></iframe>

[run](javascript:window.hacked=3) [data](data:text/html,<script>window.hacked=4</script>) [file](file:///etc/passwd)
![pixel](http://evil.example/pixel.png) <javascript:alert(1)> [tab](java\tscript:window.hacked=5)

| <b onclick="window.hacked=6">a</b> | b |
|---|---|
| <svg onload="window.hacked=7"> | [x](vbscript:x) |

```<img src=x onerror=window.hacked=8>
</code></pre><script>window.hacked = 9</script>
```
"""


def show(page, server, markdown, size=7):
    server.answers(text(markdown, size))
    ask(page, "go")
    done(page)
    return answers(page)


def html(page, markdown):
    """The elements of a text that is there at once."""
    return page.evaluate("""async (text) => {
        const { render } = await import("/page/markdown.js");
        const home = document.createElement("div");
        home.append(...render(text));
        return home.innerHTML;
    }""", markdown)


def test_hostile_text_stays_text(page, server):
    answer = show(page, server, HOSTILE)
    for tag in ["script", "img", "iframe", "svg", "b"]:
        expect(answer.locator(tag)).to_have_count(0)
    # Addresses are links that nobody loads; the fixture fails on any request that leaves the origin.
    assert [link.get_attribute("href") for link in answer.locator("a").all()] == ["http://evil.example/", "http://evil.example/pixel.png"]
    expect(answer).to_contain_text("<script>window.hacked = 1</script>")
    assert page.evaluate("window.hacked") is None
    page.reload()
    expect(answers(page)).to_contain_text("<script>window.hacked = 1</script>")
    assert page.evaluate("window.hacked") is None


def test_links_give_the_page_they_open_no_way_back(page, server):
    link = show(page, server, "see [this](https://example.com/a_b?c=1) and https://example.org/x.").locator("a")
    assert [each.get_attribute("href") for each in link.all()] == ["https://example.com/a_b?c=1", "https://example.org/x"]
    assert {each.get_attribute("rel") for each in link.all()} == {"noopener noreferrer"}


@pytest.mark.parametrize("markdown, expected", [
    ("a **b *c* d** e", "<p>a <strong>b <em>c</em> d</strong> e</p>"),
    ("***both***", "<p><strong><em>both</em></strong></p>"),
    ("snake_case_name 2*3*4 * 5", "<p>snake_case_name 2<em>3</em>4 * 5</p>"),
    ("**open `code **` x", "<p>**open <code>code **</code> x</p>"),
    ("``a ` b`` ~~no~~", "<p><code>a ` b</code> <del>no</del></p>"),
    (r"\*not\* \(x\)", r"<p>*not* \(x\)</p>"),
    ("a\nb", "<p>a<br>b</p>"),
    ("# One #\n## Two", '<h3 class="h1">One</h3><h4 class="h2">Two</h4>'),
    ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
    ("3. a\n\n4. b", '<ol start="3" class="loose"><li><p>a</p></li><li><p>b</p></li></ol>'),
    ("1. a\n  - b", "<ol><li>a<ul><li>b</li></ul></li></ol>"),
    ("- [x] did\n- [ ] do", "<ul><li>☑ did</li><li>☐ do</li></ul>"),
    ("born in\n1986. And", "<p>born in<br>1986. And</p>"),
    ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
    ("a\n***\nb", "<p>a</p><hr><p>b</p>"),
    ("|a|b|\n|:-:|--:|\n|1\\|2|`x`|", '<div class="wide"><table><thead><tr><th class="middle">a</th><th class="right">b</th></tr></thead>'
     '<tbody><tr><td class="middle">1|2</td><td class="right"><code>x</code></td></tr></tbody></table></div>'),
    ("[a] (b) [c](d)", "<p>[a] (b) [c](d)</p>"),
    ("[**x**](https://a.b/)", '<p><a href="https://a.b/" target="_blank" rel="noopener noreferrer"><strong>x</strong></a></p>'),
])
def test_markdown_is_drawn(page, markdown, expected):
    assert html(page, markdown) == expected


EVERYTHING = """# Title

A paragraph with **bold** and
a second line.

1. one
   ```py
   x = 1

   y = 2
   ```
2. two
   - nested
-5 is a number

| a | b |
|---|---|
| 1 | 2 |
> quote
> more

```rust
fn main() {

}
```
- end"""


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_a_text_in_pieces_is_drawn_as_the_whole(page, size):
    pieces = page.evaluate("""async ([text, size]) => {
        const { MarkdownStream } = await import("/page/stream.js");
        const home = document.createElement("div");
        const stream = new MarkdownStream(home);
        for (let at = 0; at < text.length; at += size) {
            stream.push(text.slice(at, at + size));
            stream.draw();
        }
        stream.end();
        return home.innerHTML;
    }""", [EVERYTHING, size])
    assert pieces == html(page, EVERYTHING)


@pytest.mark.parametrize("unit", ["*a ", "[", "![a](", "`a``b", "> ", "- ", "**_", "|", "_a*", "~~", "](", "http://", "a|b\n", "- a\n", "<", "\\", " *\n> "])
def test_text_made_to_be_slow_is_not(page, unit):
    """Four times the text takes far less than sixteen times as long; the bound is wide, since machines are busy."""
    ratio = page.evaluate("""async (unit) => {
        const { render } = await import("/page/markdown.js");
        const time = (count) => Math.min(...[0, 1, 2].map(() => {
            const before = performance.now();
            render(unit.repeat(count));
            return performance.now() - before;
        }));
        time(2000);
        return time(32000) / (time(8000) + 5);
    }""", unit)
    assert ratio < 11


def test_code_is_copied_as_it_is(page, server):
    answer = show(page, server, "```py\nif x:\n\tprint('<b>')\n```")
    expect(answer.locator(".bar span")).to_have_text("py")
    answer.get_by_role("button", name="Copy code").click()
    expect(page.locator("#status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "if x:\n\tprint('<b>')"
