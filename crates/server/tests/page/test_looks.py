"""The keyboard alone, dark and light, and a phone's width. SHOTS=folder keeps pictures of what was seen."""

import os
import pathlib

import pytest
from playwright.sync_api import expect

from standin import text
from test_chat import answers, ask, done

PHONE = {"viewport": {"width": 360, "height": 720}, "has_touch": True, "is_mobile": True}
ANSWER = """## Streaming experts

A mixture of experts uses **few** of its weights for each token, so most can stay on disk. See [the paper](https://example.org/moe).

1. The router picks `top_k` experts.
2. What is not in memory is read.
   - one read serves *all* rows

```rust
fn pick(scores: &[f32], top_k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a])); // a long line that has to scroll inside its box
    order.truncate(top_k);
    order
}
```

| model | experts | active | bytes on disk | tokens per second |
|:------|--------:|-------:|--------------:|------------------:|
| small | 32 | 4 | 12 GB | 21.5 |
| large | 128 | 8 | 63 GB | 6.2 |

> Nothing leaves this machine.
"""


def picture(page, name):
    if folder := os.environ.get("SHOTS"):
        page.wait_for_timeout(300)
        page.screenshot(path=pathlib.Path(folder) / f"{name}.png")


def converse(page, server):
    server.answers([{"reasoning_content": "They ask about experts."}, *text(ANSWER, 40)])
    ask(page, "How can a model be larger than memory?")
    done(page)


def paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_the_systems_theme_holds_until_another_is_chosen(page, server, request):
    picture(page, f"empty-{request.node.callspec.id}")
    converse(page, server)
    picture(page, request.node.callspec.id)
    before = paper(page)
    assert before == ("rgb(24, 23, 21)" if request.node.callspec.id == "dark" else "rgb(253, 252, 250)")
    page.get_by_role("button", name="Switch between light and dark").click()
    assert paper(page) != before
    page.reload()
    assert paper(page) != before
    page.get_by_role("button", name="Settings").click()
    picture(page, f"settings-after-{request.node.callspec.id}")
    page.get_by_label("Theme").select_option("")
    assert paper(page) == before


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_text_stands_out_from_its_ground(page, server):
    """Contrast as WCAG 2 counts it: at least 4.5 for every colour of text."""
    ratios = page.evaluate("""() => {
        const probe = document.body.appendChild(document.createElement("i"));
        const light = (name) => {
            probe.style.color = `var(--${name})`;
            const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
            const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const pairs = [["ink", "paper"], ["ink", "raised"], ["faint", "paper"], ["faint", "raised"], ["ember", "paper"], ["on-ember", "ember"], ["wrong", "paper"]];
        const found = Object.fromEntries(pairs.map(([a, b]) => [`${a} on ${b}`, ratio(a, b)]));
        probe.remove();
        return found;
    }""")
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=["phone"])
def test_a_phone_never_scrolls_sideways(page, server):
    def width():
        return page.evaluate("[document.documentElement.scrollWidth, document.querySelector('#scroll').scrollWidth - document.querySelector('#scroll').clientWidth]")

    assert width() == [360, 0]
    converse(page, server)
    picture(page, "phone")
    assert width() == [360, 0]
    ask(page, "x" * 400)
    done(page)
    assert width() == [360, 0]
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator("#new")).to_be_visible()
    picture(page, "phone-conversations")
    assert width() == [360, 0]
    page.keyboard.press("Escape")
    expect(page.locator("#new")).to_be_hidden()
    page.get_by_role("button", name="Settings").click()
    picture(page, "phone-settings")
    assert width() == [360, 0]


def focused(page):
    return page.evaluate("""() => { const e = document.activeElement; return e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent; }""")


def test_the_keyboard_alone_is_enough(page, server):
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.type("line one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("line two")
    assert server.asked == []
    page.keyboard.press("Enter")
    done(page)
    assert server.asked[0]["messages"][0]["content"] == "line one\nline two"
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Message", exact=True)).to_have_value("line one\nline two")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")

    page.evaluate("document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus()")
    order = []
    for _ in range(16):
        page.keyboard.press("Tab")
        order.append(focused(page))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement.parentElement).boxShadow")
        assert outline != "nonenone", order
        if order[-1] == "Message":
            break
    picture(page, "focus")
    assert order == [
        "Skip to the message box", "Conversations", "Model", "Switch between light and dark", "Settings", "New conversation", "line one",
        "Rename line one", "Delete line one", "Export", "Import", "Copy message", "Edit", "Copy message", "Regenerate", "Message",
    ]


def test_the_skip_link_leads_to_the_message_box(page, server):
    skip = page.get_by_role("link", name="Skip to the message box")
    skip.focus()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_what_happens_is_told_to_those_who_do_not_see_it(page, server):
    expect(page.locator("#log")).to_have_attribute("aria-live", "polite")
    server.answers(text("some words"), pause=0.1)
    ask(page, "go")
    expect(page.locator("#status")).to_have_text("Writing …")
    expect(page.locator("#log")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#status")).to_have_text("The answer is complete.")


def test_every_control_has_a_name(page, server):
    converse(page, server)
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, input:not([hidden]), select, textarea, a")]
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length) && e.id !== "confirm-yes").map((e) => e.outerHTML)""")
    assert nameless == []


def test_a_long_conversation_stays_fast(page, server):
    """The work of a token doesn't grow with what is above it: the elements that are drawn stay, only the last changes."""
    page.evaluate("""async () => {
        const { save } = await import("/page/store.js");
        const messages = Array.from({ length: 400 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Message **${i}**\\n\\n- a\\n- b` }));
        await save({ id: "long", title: "Long", updated: Date.now(), messages });
    }""")
    page.reload()
    page.locator("#conversations .name", has_text="Long").click()
    expect(page.locator(".message")).to_have_count(400)
    page.evaluate("""() => {
        window.changes = 0;
        const log = document.querySelector("#log");
        const isLast = (node) => node === log || log.lastElementChild.contains(node);
        new MutationObserver((all) => (window.changes += all.filter(({ target }) => !isLast(target)).length)).observe(log, { subtree: true, childList: true, characterData: true });
    }""")
    server.answers(text("word " * 100))
    ask(page, "go")
    done(page)
    expect(answers(page).last).to_contain_text("word word")
    assert page.evaluate("window.changes") == 0
