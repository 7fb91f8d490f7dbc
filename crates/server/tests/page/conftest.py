"""Chromium and the stand-in server. Every test fails if the page asks another origin for anything or writes an error to the console."""

import os
import shutil
import sys

import pytest
from playwright.sync_api import sync_playwright

from standin import StandIn

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def pytest_collection_modifyitems(items):
    if CHROMIUM:
        return
    print("\nSKIPPED: no Chromium, so the web page is NOT tested. Install chromium, or set CHROMIUM to its path.", file=sys.stderr)
    for item in items:
        item.add_marker(pytest.mark.skip(reason="no Chromium: install it, or set CHROMIUM to its path"))


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        # As root Chromium has no sandbox to start.
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=os.geteuid() != 0)
        yield chromium
        chromium.close()


@pytest.fixture
def server():
    standin = StandIn()
    yield standin
    standin.close()


@pytest.fixture
def page(browser, server, request):
    # A test's parameters are options of the browser's context.
    options = {"viewport": {"width": 1200, "height": 800}, **getattr(request, "param", {})}
    context = browser.new_context(**options)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    strays, errors = [], []

    def watch(route):
        if route.request.url.startswith((server.url, "blob:", "data:")):
            return route.continue_()
        strays.append(route.request.url)
        route.abort()

    context.route("**/*", watch)
    page = context.new_page()
    page.set_default_timeout(5000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None)
    page.goto(server.url)
    page.wait_for_selector("#model:not([disabled]), .failure")
    yield page
    context.close()
    assert strays == [], "requests to other origins"
    assert errors == [], "errors of the page"
