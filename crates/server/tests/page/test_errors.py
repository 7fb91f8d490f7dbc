"""What the page says when something is wrong, and that it goes on from there."""

from playwright.sync_api import expect

from standin import text
from test_chat import answers, ask, done


def test_a_missing_key_is_asked_for_and_then_used(page, server):
    server.key = "k-123"
    page.reload()
    expect(page.locator(".failure")).to_contain_text("asks for an API key")
    page.get_by_role("button", name="Enter the key").click()
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type("k-123")
    page.keyboard.press("Enter")
    expect(page.locator(".failure")).to_have_count(0)
    ask(page, "go")
    expect(answers(page)).to_have_text("Hello.")


def test_a_wrong_key_is_said_to_be_wrong(page, server):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("API key").fill("wrong")
    page.get_by_role("button", name="Done").click()
    server.key = "right"
    ask(page, "go")
    expect(page.locator(".failure")).to_contain_text("doesn’t accept this API key")


def test_a_full_queue_says_when_to_try_again(page, server):
    server.refuses(429, headers={"Retry-After": "7"})
    ask(page, "go")
    expect(page.locator(".failure")).to_contain_text("try again in 7 seconds")
    page.get_by_role("button", name="Try again").click()
    expect(answers(page)).to_have_text("Hello.")
    expect(page.locator(".failure")).to_have_count(0)


def test_a_refused_field_is_shown_in_the_servers_words(page, server):
    server.refuses(400, "temperature: must be at most 2")
    ask(page, "go")
    expect(page.locator(".failure")).to_contain_text("temperature: must be at most 2")


def test_a_server_that_is_gone_is_said_to_be(page, server):
    server.close()
    ask(page, "go")
    expect(page.locator(".failure")).to_contain_text("can’t be reached")
    expect(page.locator(".user .text")).to_have_text("go")


def test_a_connection_that_breaks_keeps_what_came(page, server):
    server.answers(text("half an ans"), end=False)
    ask(page, "go")
    expect(page.locator(".note")).to_contain_text("broke off")
    expect(answers(page)).to_have_text("half an ans")
    page.get_by_role("button", name="Regenerate").click()
    expect(answers(page)).to_have_text("Hello.")


def test_an_unanswered_message_can_be_asked_after_a_reload(page, server):
    server.refuses(503, "the model is not loaded yet")
    ask(page, "go")
    expect(page.locator(".failure")).to_contain_text("not loaded yet")
    page.reload()
    page.get_by_role("button", name="Answer").click()
    expect(answers(page)).to_have_text("Hello.")
    done(page)
