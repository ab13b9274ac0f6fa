# SPDX-License-Identifier: Apache-2.0
"""Certificates for servers of tests, by openssl."""
import pathlib
import ssl
import subprocess


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                     "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=60)

    def issue(self, *names):
        stem = names[0].replace("*", "any")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server",
                     "-keyout", f"{stem}.key", "-out", f"{stem}.csr")
        (self.folder / f"{stem}.ext").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in names) + "\n")
        self.openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "2", "-extfile", f"{stem}.ext", "-out", f"{stem}.pem")
        return self.folder / f"{stem}.pem", self.folder / f"{stem}.key"

    def context(self):
        return ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
