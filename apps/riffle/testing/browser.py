"""A headless Chromium, driven over a pipe by its DevTools protocol: all that tests of pages need."""
import base64
import json
import os
import subprocess
import tempfile
import time

PROGRAMS = ["chromium-headless-shell", "chromium"]


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, commands = os.pipe()
        self.answers, from_browser = os.pipe()

        def ends():  # the browser reads commands from 3 and answers on 4
            os.dup2(to_browser, 30)
            os.dup2(from_browser, 31)
            os.dup2(30, 3)
            os.dup2(31, 4)

        for program in PROGRAMS:
            try:
                self.process = subprocess.Popen(
                    [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                     "--disable-dev-shm-usage", "--disable-background-networking",
                     "--remote-debugging-pipe", "--user-data-dir=" + self.profile.name, "about:blank"],
                    preexec_fn=ends, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                break
            except FileNotFoundError:
                continue
        else:
            raise SystemExit("no browser: install " + " or ".join(PROGRAMS) + " (scripts/setup --peers does)")
        os.close(to_browser)
        os.close(from_browser)
        self.commands = commands
        self.rest = b""
        self.number = 0
        self.session = None
        self.requests = []
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network"]:
            self.call(domain + ".enable")

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"].get("exception", {}).get("description"))

    def _next(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """Returns the value of an expression; None if it throws, as before the page is there."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return None if "exceptionDetails" in result else result["result"].get("value")

    def wait(self, expression, seconds=60):
        """Returns the first value of the expression that is true, and how long that took."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            value = self.value(expression)
            if value:
                return value, time.monotonic() - start
            time.sleep(0.02)
        text = (self.value("document.body.innerText") or "")[:2000]
        raise AssertionError(f"not within {seconds} s: {expression}\n{text}\nerrors: {self.errors}")

    def screen(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
