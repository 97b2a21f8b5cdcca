"""tests/system/kubernetes/build-components makes what can be made, and says what cannot: with a go command of our own."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(__file__).resolve().parents[2] / "system/kubernetes/build-components"

# Takes FAKE_ABSENT for modules that cannot be had, FAKE_BROKEN for programs that cannot be built; notes each program in FAKE_FOLDER/built.
GO = """#!/bin/sh
set -eu
for word in "$@"; do last=$word; done
is_of() { case " $2 " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
make() { # FILE
    ! is_of "$(basename "$1")" "$FAKE_BROKEN" || { echo "go: $1 does not compile" >&2; exit 1; }
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\\n' >"$1"
    chmod 755 "$1"
    basename "$1" >>"$FAKE_FOLDER/built"
}
case $1 in
version) echo go version go1.25.5 ;;
env) [ "$2" = GOVERSION ] && echo go1.25.5 ;;
mod)
    ! is_of "${last%@*}" "$FAKE_ABSENT" || { echo "go: $last: 404 Not Found" >&2; exit 1; }
    [ "$3" != -json ] || echo "	\\"Dir\\": \\"$FAKE_FOLDER/origin\\""
    ;;
install) make "$GOBIN/$(basename "${last%@*}")" ;;
build)
    while [ "$1" != -o ]; do shift; done
    make "$2"
    ;;
esac
"""


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="components-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "origin").mkdir()
        for name in ("go.mod", "go.sum"):
            (self.folder / "origin" / name).write_text("module k8s.io/kubernetes\n")
        self.go = self.folder / "go"
        self.go.write_text(GO)
        self.go.chmod(0o755)

    def build(self, *components, absent="", broken=""):
        environment = os.environ | {"GO": str(self.go), "XDG_CACHE_HOME": str(self.folder / "cache"), "FAKE_FOLDER": str(self.folder),
                                    "FAKE_ABSENT": absent, "FAKE_BROKEN": broken}
        return subprocess.run([BUILD, *components], env=environment, capture_output=True, text=True, timeout=120)

    def made(self):
        return sorted(path.name for path in (self.folder / "cache/skep-test").glob("kubernetes-*/*") if path.name != "lock")

    def test_all_are_made_once(self):
        parts = ["helm", "kubelet", "kwok", "runc"]
        for _ in range(2):
            done = self.build(*parts)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.made(), parts)
        self.assertEqual(sorted((self.folder / "built").read_text().split()), parts)

    def test_what_cannot_be_had_keeps_no_other_from_being_made(self):
        done = self.build("kwok", "kubelet", "helm", absent="sigs.k8s.io/kwok")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertEqual(self.made(), ["helm", "kubelet"])
        self.assertEqual(done.stderr.splitlines()[-1], "build-components: cannot be had here: kwok; the tests that need them are skipped")
        done = self.build("kubelet", "kube-apiserver", "device-plugin", "kwok", absent="k8s.io/kubernetes")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertEqual(self.made(), ["helm", "kubelet", "kwok"])
        self.assertIn("cannot be had here: kube-apiserver device-plugin;", done.stderr)

    def test_what_cannot_be_built_keeps_no_other_from_being_made(self):
        done = self.build("kubelet", "kwok", "containerd", "helm", broken="kubelet containerd")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.made(), ["helm", "kwok"])
        self.assertEqual(done.stderr.splitlines()[-1], "build-components: could not be built: kubelet containerd")
        self.assertIn("kubelet does not compile", done.stderr)

    def test_a_failure_is_told_rather_than_what_is_absent(self):
        done = self.build("kwok", "helm", "runc", absent="helm.sh/helm/v3", broken="kwok")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.made(), ["runc"])
        self.assertIn("cannot be had here: helm;", done.stderr)
        self.assertIn("could not be built: kwok", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
