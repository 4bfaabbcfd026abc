"""A headless Chromium, driven by chromedriver's own protocol (W3C WebDriver)."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager

import pytest

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CONTROL, ENTER, ESCAPE, TAB = "\ue009", "\ue007", "\ue00c", "\ue004"


class Browser:
    """One window."""

    def __init__(self, address, session):
        self.address, self.session = address, session

    def call(self, path, content=None, method="POST"):
        return _call(f"{self.address}/session/{self.session}/{path}", content, method)

    def open(self, url):
        self.call("url", {"url": url})

    def run(self, script, *arguments):
        """The value of a JavaScript function body."""
        return self.call("execute/sync", {"script": script, "args": arguments})

    def run_async(self, script):
        """The value that a JavaScript expression promises."""
        body = f"const done = arguments[0]; ({script}).then(done, (error) => done(String(error)))"
        return self.call("execute/async", {"script": body, "args": []})

    def wait_for(self, script):
        """Until a JavaScript expression is true."""
        while not (found := self.run(f"return {script}")):
            time.sleep(0.1)
        return found

    def type(self, selector, keys):
        found = self.call("element", {"using": "css selector", "value": selector})[ELEMENT]
        self.call(f"element/{found}/value", {"text": keys})

    def press(self, *keys):
        """Press keys together, wherever the focus is."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.call("actions", {"actions": [{"type": "key", "id": "keys", "actions": down + up}]})

    def complaints(self):
        """The console's output."""
        return [entry["message"] for entry in self.call("se/log", {"type": "browser"})]

    def chrome(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.call("goog/cdp/execute", {"cmd": command, "params": parameters})


def _call(url, content, method):
    data = None if method != "POST" else json.dumps(content or {}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()[:2000]) from None


@contextmanager
def browser(profile, *flags):
    """A browser with its profile in a folder, whose microphone beeps; skips where Chromium is not installed."""
    known = os.environ.get("CHROMIUM"), shutil.which("chromium"), shutil.which("google-chrome")
    driver, chromium = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver"), next(filter(None, known), None)
    if not (driver and chromium):
        install = "apt-get update && apt-get install --no-install-recommends chromium chromium-driver"
        pytest.skip(f"no Chromium here: {install}, or name them in CHROMIUM and CHROMEDRIVER")
    process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(found[1] for line in process.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        address = f"http://127.0.0.1:{port}"
        options = {"binary": chromium, "args": [*FLAGS, *flags, f"--user-data-dir={profile}", "--window-size=1120,900"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = _call(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}}, "POST")["sessionId"]
        found = Browser(address, session)
        found.call("timeouts", {"script": None, "pageLoad": 2**31})
        yield found
        _call(f"{address}/session/{session}", None, "DELETE")
    finally:
        process.terminate()
        process.wait()
