"""Whether what drives a browser is there: node, npm and a Chromium, without windows or whole (web/e2e/browser.mjs)."""
import shutil


def missing():
    """Which of them is not installed, as a sentence, or None."""
    for program in ("node", "npm", "chromium-headless-shell"):
        if not shutil.which(program) and not (program == "chromium-headless-shell" and shutil.which("chromium")):
            return f"{program} is not installed"
    return None
