# SPDX-License-Identifier: Apache-2.0
"""The original wants Python 3.12; before 3.11.4 (Debian 12 has 3.11.2) tarfile knows no filter=.  What is asked here is
whether the two understand each other's archives, for which it can be left out.  First in PYTHONPATH for the original."""
import tarfile

if not hasattr(tarfile, "data_filter"):
    def without_filter(method):
        def call(self, *arguments, filter=None, **named):
            return method(self, *arguments, **named)
        return call

    tarfile.TarFile.extract = without_filter(tarfile.TarFile.extract)
    tarfile.TarFile.extractall = without_filter(tarfile.TarFile.extractall)
