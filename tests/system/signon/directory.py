"""A real directory (Debian's slapd) in a folder of its own, on loopback, with a certificate of its own; ended by its own process id."""
import pathlib
import shutil
import subprocess
import tempfile

from task_ports import server_port

BASE = "dc=skep,dc=test"
SEARCHER, SEARCHER_PASSWORD = f"cn=skepd,{BASE}", "of skepd: 0123456789"
ROOT, ROOT_PASSWORD = f"cn=root,{BASE}", "of root: 0123456789"
CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
argsfile {folder}/args
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
allow bind_anon_dn bind_anon_cred
database mdb
suffix "{base}"
rootdn "{root}"
rootpw "{root_password}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{searcher}" read by self read by * none
"""


def missing():
    """Why it cannot run, or None."""
    for program in ("/usr/sbin/slapd", "/usr/sbin/slapadd", "/usr/bin/ldapmodify", "/usr/bin/openssl"):
        if not pathlib.Path(program).exists():
            return f"{program} is not installed (tools/install-deps --test)"
    return None


def entry(dn, *lines):
    return "\n".join([f"dn: {dn},{BASE}", *lines]) + "\n\n"


def person(uid, password, mail=None, place="people"):
    more = [f"mail: {mail}"] if mail else []
    return entry(f"uid={uid},ou={place}", "objectClass: inetOrgPerson", f"uid: {uid}", f"cn: {uid}", "sn: x",
                 f"userPassword: {password}", *more)


def group(name, *members):
    return entry(f"cn={name},ou=groups", "objectClass: groupOfNames", f"cn: {name}", f"member: {ROOT}",
                 *[f"member: uid={member},ou=people,{BASE}" for member in members])


class Directory:
    def __init__(self, entries, names="IP:127.0.0.1"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skep-slapd-"))
        self.port, self.tls_port = server_port(), server_port()
        self.process = None
        (self.folder / "data").mkdir()
        self.certify(names)
        self.config = self.folder / "slapd.conf"
        self.config.write_text(CONFIG.format(folder=self.folder, base=BASE, root=ROOT, root_password=ROOT_PASSWORD, searcher=SEARCHER))
        first = f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: skep\ndc: skep\n\n"
        first += "".join(entry(f"ou={name}", "objectClass: organizationalUnit", f"ou: {name}") for name in ("people", "others", "groups"))
        first += entry("cn=skepd", "objectClass: person", "cn: skepd", "sn: skepd", f"userPassword: {SEARCHER_PASSWORD}")
        self.run("/usr/sbin/slapadd", "-f", self.config, text=first + entries)
        self.start()

    def run(self, *words, text=None):
        done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")

    def certify(self, names):
        """An authority, and a certificate of it for these names."""
        days = ("-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self.run("openssl", "req", "-x509", *days, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority of the test")
        self.run("openssl", "req", "-x509", *days, "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "cert.pem",
                 "-subj", "/CN=slapd", "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE")

    def start(self):
        self.process = subprocess.Popen(
            ["/usr/sbin/slapd", "-f", self.config, "-h", f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}", "-d", "stats"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "slapd starting" in line:
                break
        else:
            raise AssertionError("slapd did not start:\n" + "".join(said))
        # nobody reads on: its log must not fill the pipe
        with open(self.folder / "slapd.log", "a") as log:
            self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log)

    def log(self):
        return (self.folder / "slapd.log").read_text(errors="replace")

    def change(self, ldif):
        self.run("ldapmodify", "-x", "-H", f"ldap://127.0.0.1:{self.port}", "-D", ROOT, "-w", ROOT_PASSWORD, text=ldif)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.drain.wait(60)
            self.process.stderr.close()
        self.process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)
