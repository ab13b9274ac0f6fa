# SPDX-License-Identifier: Apache-2.0
"""Clients that people use, in the image with toolchains, against servers in a namespace without a way out: each reaches what is
allowed, and without that fails and names what was refused.  All of them share two runs, and each has a name of its own."""
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile

import pytest

from conftest import ROOT, kernel_environment
from inside import HERE, prepared  # noqa: F401 (a fixture)

sys.path.insert(0, str(ROOT / "tests/e2e"))
from egress_world import ZONE, World, rig, rows_of  # noqa: E402

GO = """
package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os")
func main() {
    pem, _ := os.ReadFile("/workspace/ca.pem")
    pool := x509.NewCertPool()
    pool.AppendCertsFromPEM(pem)
    client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
    answer, err := client.Get("https://" + os.Args[1] + "/")
    if err != nil { fmt.Println(err); os.Exit(1) }
    body, _ := io.ReadAll(answer.Body)
    fmt.Print(string(body))
}
"""

JAVA = """
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;
public class Fetch {
    public static void main(String[] words) throws Exception {
        var store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setCertificateEntry("test", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("ca.pem")));
        var managers = TrustManagerFactory.getInstance("PKIX");
        managers.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        var client = HttpClient.newBuilder().sslContext(context).build();
        var request = HttpRequest.newBuilder(URI.create("https://" + words[0] + "/")).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""

URLLIB = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile="ca.pem")
print(urllib.request.urlopen(f"https://{sys.argv[1]}/", context=context, timeout=300).read().decode(), end="")
"""

REQUESTS = """
import sys
sys.path.insert(0, "lib-python")
import requests
answer = requests.get(f"https://{sys.argv[1]}/", verify="ca.pem", timeout=300)
answer.raise_for_status()
print(answer.text, end="")
"""

NODE = "const r = await fetch(`https://${process.argv[2]}/`); console.log(await r.text());"

# No package is built: they are linked from the archives that the toolchain brings.
BUILD = {"fetch-go": "go tool compile -p main -o $HOME/fetch.o fetch.go && go tool link -o fetch-go $HOME/fetch.o",
         "Fetch.class": "javac -J-XX:TieredStopAtLevel=1 Fetch.java"}

# What takes longest is first, since two run at a time.  NAME is a name of the client's own.
FETCH = {
    "npm": "cd app && npm install --no-progress --registry=https://NAME/files/npm/ tiny-word && node -p \"require('tiny-word')\"",
    "java": "java -XX:TieredStopAtLevel=1 -cp . Fetch NAME",
    "node": "NODE_EXTRA_CA_CERTS=/workspace/ca.pem node fetch.mjs NAME",
    "requests": "python3 fetch_requests.py NAME",
    "git": "git -c http.sslCAInfo=/workspace/ca.pem clone -q https://NAME/files/project.git $HOME/p && cat $HOME/p/word",
    "urllib": "python3 fetch_urllib.py NAME",
    "go": "GODEBUG=netdns=go ./fetch-go NAME",
    "go-libc": "GODEBUG=netdns=cgo ./fetch-go NAME",
    "curl": "LD_LIBRARY_PATH=lib ./curl -sS --cacert ca.pem https://NAME/",
    "wget": "LD_LIBRARY_PATH=lib ./wget -nv --tries=1 --ca-certificate=ca.pem -O - https://NAME/",
}
CLIENTS = list(FETCH)


def name_of(client):
    return f"{client}.example.org"


def wanted(client):
    return {"git": "from the repository\n", "npm": "from the registry\n"}.get(client, f"site {name_of(client)} {name_of(client)} ")


class Clients(World):
    """The world with a name for each client, and the image with the clients."""

    zone = {**ZONE, **{name_of(client): [rig.SITE, rig.SITE6] for client in CLIENTS}}

    def __init__(self, factory, sandbox, prepared):
        super().__init__(factory, sandbox)
        self.image = (prepared / "image").read_text().strip()
        self.serve_repository()
        self.serve_package()
        self.inputs = self.make_inputs(prepared)
        self.build()

    def serve_repository(self):
        work, bare = self.folder / "project", self.folder / "files/project.git"
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run([*git, "init", "-q", work], check=True)
        (work / "word").write_text(wanted("git"))
        subprocess.run([*git, "-C", work, "add", "."], check=True)
        subprocess.run([*git, "-C", work, "commit", "-qm", "one"], check=True)
        subprocess.run([*git, "clone", "-q", "--bare", work, bare], check=True)
        subprocess.run([*git, "-C", bare, "update-server-info"], check=True)

    def serve_package(self):
        folder = self.folder / "files/npm"
        folder.mkdir()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for name, text in (("package/package.json", '{"name":"tiny-word","version":"1.0.0","main":"index.js"}'),
                               ("package/index.js", "module.exports = 'from the registry';\n")):
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        (folder / "tiny-word-1.0.0.tgz").write_bytes(out.getvalue())
        dist = {"tarball": f"https://{name_of('npm')}/files/npm/tiny-word-1.0.0.tgz", "shasum": hashlib.sha1(out.getvalue()).hexdigest()}
        (folder / "tiny-word").write_text(json.dumps({"name": "tiny-word", "dist-tags": {"latest": "1.0.0"}, "versions": {
            "1.0.0": {"name": "tiny-word", "version": "1.0.0", "main": "index.js", "dist": dist}}}))

    def make_inputs(self, prepared):
        """A folder with everything that the clients need."""
        npmrc = "cafile=/workspace/ca.pem\nupdate-notifier=false\nfund=false\naudit=false\nfetch-retries=0\n"
        folder = self.workspace("", {name: text.encode() for name, text in (
            ("fetch.go", GO), ("Fetch.java", JAVA), ("fetch.mjs", NODE), ("fetch_urllib.py", URLLIB), ("fetch_requests.py", REQUESTS))})
        (folder / "app").mkdir()
        (folder / "app/.npmrc").write_text(npmrc)
        (folder / "app/package.json").write_text('{"name":"app","version":"1.0.0"}')
        shutil.copy(HERE / "guest/clients.py", folder)
        shutil.copytree(prepared / "requests/lib", folder / "lib-python")
        (folder / "lib").mkdir()
        for program in ("curl", "wget"):
            copy_host_program(program, folder)
        return folder

    def build(self):
        with_outputs = [word for output in BUILD for word in ("--output", output)]
        self.call(BUILD, *with_outputs, "--output-dir", self.inputs)
        assert all((self.inputs / output).exists() for output in BUILD)

    def call(self, scripts, *options):
        """A run of these scripts: its result, and what each of them came to."""
        (self.inputs / "clients.json").write_text(json.dumps(scripts))
        argv = self.network.argv(self.sandbox.cli, "run", "--json", "--image", self.image, "--pull", "never", "--deadline", "900s",
                                 "--memory", "2Gi", "--exclude", "none", "--workspace", self.inputs, *options, "--", "python3", "clients.py")
        done = subprocess.run(argv, env={**self.sandbox.env, **kernel_environment("built")}, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=1000)
        assert done.stdout, done.stderr.decode()
        result = json.loads(done.stdout)
        assert result["ok"], result["output"][-4000:] + done.stderr.decode()
        result["said"] = done.stderr.decode()
        result["clients"] = {line["client"]: line for line in map(json.loads, result["stdout"].splitlines())}
        return result

    def fetch(self, *allowed):
        return self.call({client: script.replace("NAME", name_of(client)) for client, script in FETCH.items()},
                         *(word for name in allowed for word in ("--egress", name)))


def copy_host_program(program, folder):
    """A program of this machine with its libraries: the image has none."""
    path = shutil.which(program) or pytest.fail(f"{program} is not installed (scripts/lib/packages.sh)", pytrace=False)
    shutil.copy(path, folder / program)
    for line in subprocess.run(["ldd", path], capture_output=True, check=True, text=True).stdout.splitlines():
        words = line.split()
        if "=>" in words and not words[0].startswith(("libc.", "libm.", "libdl.", "libpthread.", "libresolv.")):
            shutil.copy(words[2], folder / "lib" / words[0])


@pytest.fixture(scope="module")
def clients(tmp_path_factory, sandbox, prepared):  # noqa: F811
    clients = Clients(tmp_path_factory, sandbox, prepared)
    yield clients
    clients.close()


@pytest.fixture(scope="module")
def allowed(clients):
    return clients.fetch(*map(name_of, CLIENTS))


@pytest.fixture(scope="module")
def refused(clients):
    return clients.fetch("elsewhere.example.org")


@pytest.mark.parametrize("client", CLIENTS)
def test_with_its_name_allowed_it_works(allowed, client):
    end = allowed["clients"][client]
    assert end["code"] == 0 and wanted(client) in end["said"], end
    rows = rows_of(allowed, name=name_of(client))
    assert rows_of(allowed, sni=name_of(client), decision="allowed", reason="none"), rows
    assert not [row for row in rows if row["decision"] == "refused"], rows
    assert name_of(client) not in allowed["said"]


@pytest.mark.parametrize("client", CLIENTS)
def test_without_it_fails_and_the_option_is_said(refused, client):
    end = refused["clients"][client]
    assert end["code"] not in (0, "no end") and wanted(client) not in end["said"], end
    said = [line for line in refused["said"].splitlines() if name_of(client) in line.split()]
    assert len(said) == 1 and said[0].partition("; to allow it: --egress ")[2].startswith(f"{name_of(client)} ("), refused["said"]
