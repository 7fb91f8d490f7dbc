"""Asking and answering: streaming, stopping, asking again, editing, what is sent, and what is kept."""

import json

import pytest
from playwright.sync_api import expect

from standin import text


def ask(page, words):
    page.get_by_label("Message", exact=True).fill(words)
    page.keyboard.press("Enter")


def answers(page):
    return page.locator(".assistant .text")


def done(page):
    expect(page.locator("#log")).to_have_attribute("aria-busy", "false")


def test_text_shows_while_it_is_written(page, server):
    server.answers(text("one two three four five six seven eight"), pause=0.15)
    ask(page, "count")
    expect(answers(page)).to_contain_text("one two")
    assert "eight" not in answers(page).inner_text()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(answers(page)).to_have_text("one two three four five six seven eight")
    done(page)
    expect(page.locator(".about")).to_contain_text("tokens")


def test_counts_of_the_server_show_while_it_writes(page, server):
    server.answers(text("slow " * 12), pause=0.1)
    ask(page, "go")
    expect(page.locator("#meters")).to_have_text("12.3 tokens/s · 88 % expert cache hits · 5.0 of 8.0 GiB memory")


def test_a_server_without_counts_is_no_fault(page, server):
    server.stats = None
    page.reload()
    ask(page, "go")
    expect(answers(page)).to_have_text("Hello.")
    expect(page.locator("#meters")).to_be_empty()


@pytest.mark.parametrize("how", ["button", "escape"])
def test_stop_keeps_what_was_written_and_closes_the_connection(page, server, how):
    server.answers(text("word " * 400), pause=0.02)
    ask(page, "go")
    expect(answers(page)).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click() if how == "button" else page.keyboard.press("Escape")
    expect(page.locator(".note")).to_have_text("Stopped.")
    assert server.broken_off.wait(5)
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_regenerate_replaces_the_last_answer(page, server):
    server.answers(text("first answer"))
    server.answers(text("second answer"))
    ask(page, "go")
    done(page)
    page.get_by_role("button", name="Regenerate").click()
    expect(answers(page)).to_have_text(["second answer"])
    assert [m["role"] for m in server.asked[1]["messages"]] == ["user"]


def test_editing_the_last_message_asks_anew_from_there(page, server):
    for words in ["one", "two"]:
        ask(page, words)
        done(page)
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("two")
    ask(page, "three")
    done(page)
    expect(page.locator(".user .text")).to_have_text(["one", "three"])
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["one", "Hello.", "three"]


def test_settings_are_sent_and_what_is_empty_is_not(page, server):
    ask(page, "plain")
    done(page)
    assert set(server.asked[0]) == {"model", "messages", "stream", "stream_options"}
    page.get_by_role("button", name="Settings").click()
    for label, value in [("System prompt", "Be brief."), ("Temperature", "0.5"), ("Top p", "0.9"), ("Most tokens of an answer", "64"), ("Seed", "7")]:
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Done").click()
    page.get_by_label("Model", exact=True).select_option("another-model")
    ask(page, "go")
    done(page)
    sent = server.asked[1]
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (sent["model"], sent["temperature"], sent["top_p"], sent["max_completion_tokens"], sent["seed"]) == ("another-model", 0.5, 0.9, 64, 7)


def test_conversations_survive_a_reload(page, server):
    ask(page, "first conversation")
    done(page)
    page.get_by_role("button", name="New conversation").click()
    ask(page, "second conversation")
    done(page)
    page.reload()
    names = page.locator("#conversations .name")
    expect(names).to_have_text(["second conversation", "first conversation"])
    expect(page.locator(".user .text")).to_have_text("second conversation")
    names.nth(1).click()
    expect(page.locator(".user .text")).to_have_text("first conversation")
    expect(answers(page)).to_have_text("Hello.")


def test_an_answer_goes_on_while_another_conversation_is_shown(page, server):
    server.answers(text("a b c d e f g h i j k l", 1), pause=0.05)
    ask(page, "slow one")
    expect(answers(page)).to_contain_text("a b")
    page.get_by_role("button", name="New conversation").click()
    expect(answers(page)).to_have_count(0)
    page.locator("#conversations .name", has_text="slow one").click()
    expect(answers(page)).to_have_text("a b c d e f g h i j k l")


def test_rename_and_delete(page, server):
    ask(page, "old name")
    done(page)
    page.locator("#conversations li").hover()
    page.get_by_role("button", name="Rename old name").click()
    page.keyboard.type("new name")
    page.keyboard.press("Enter")
    expect(page.locator("#conversations .name")).to_have_text("new name")
    page.get_by_role("button", name="Delete new name").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.reload()
    expect(page.locator("#conversations .name")).to_have_text("New conversation")


def test_export_and_import_give_the_same_conversation_without_the_key(page, server, tmp_path):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("API key").fill("secret-key")
    page.get_by_role("button", name="Done").click()
    ask(page, "keep me")
    done(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "export.json"
    download.value.save_as(file)
    assert "secret-key" not in file.read_text()
    assert [m["content"] for m in json.loads(file.read_text())["conversations"][0]["messages"]] == ["keep me", "Hello."]
    page.locator("#file").set_input_files(file)
    expect(page.locator("#conversations .name")).to_have_text(["keep me", "keep me"])


@pytest.mark.parametrize("content, says", [("{", "not JSON"), ("[]", "no conversations"), ('{"format":"turbospark-conversations","version":9,"conversations":[]}', "version 9")])
def test_a_wrong_file_is_refused_in_words(page, server, tmp_path, content, says):
    file = tmp_path / "wrong.json"
    file.write_text(content)
    page.locator("#file").set_input_files(file)
    expect(page.locator(".failure")).to_contain_text(says)


def test_reasoning_is_folded_and_not_sent_back(page, server):
    server.answers([{"reasoning_content": "let me "}, {"reasoning_content": "think"}, *text("Four.")])
    ask(page, "2 + 2?")
    done(page)
    thought = page.locator(".thought")
    expect(thought).to_be_hidden()
    page.get_by_text("Reasoning", exact=True).click()
    expect(thought).to_have_text("let me think")
    ask(page, "sure?")
    done(page)
    assert server.asked[1]["messages"][1] == {"role": "assistant", "content": "Four."}


def test_tool_calls_show_with_their_arguments(page, server):
    parts = [{"index": 0, "id": "c", "function": {"name": "weather", "arguments": ""}}, *({"index": 0, "function": {"arguments": a}} for a in ['{"city":', '"Oslo"}'])]
    server.answers([{"tool_calls": [part]} for part in parts], finish="tool_calls")
    ask(page, "weather?")
    expect(page.locator(".call summary")).to_have_text("Calls weather")
    expect(page.locator(".call pre")).to_have_text('{"city":"Oslo"}')


def test_an_answer_at_its_limit_says_so(page, server):
    server.answers(text("cut"), finish="length")
    ask(page, "go")
    expect(page.locator(".note")).to_have_text("The answer reached its greatest length.")


def test_the_page_follows_the_text_only_while_the_reader_is_at_the_end(page, server):
    server.answers(text("line\n\n" * 300, 12), pause=0.02)
    ask(page, "go")
    scroll = page.locator("#scroll")
    while scroll.evaluate("(e) => e.scrollTop") < 400:
        page.wait_for_timeout(50)
    scroll.hover()
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(200)
    before = scroll.evaluate("(e) => e.scrollTop")
    page.wait_for_timeout(400)
    assert scroll.evaluate("(e) => e.scrollTop") == before
    page.get_by_role("button", name="To the end").click()
    page.wait_for_timeout(300)
    assert scroll.evaluate("(e) => e.scrollHeight - e.scrollTop - e.clientHeight") < 48


def test_copy_message_copies_its_markdown(page, server):
    server.answers(text("**bold**"))
    ask(page, "go")
    done(page)
    page.locator(".assistant").get_by_role("button", name="Copy message").click()
    expect(page.locator("#status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "**bold**"
