"""The hub's API, called from outside by what its own description says.

In: the program `hubd`, and a folder. Out: what schemathesis finds, and its status. The hub serves in a folder of its own with
a host that asked, a customer, and a token of an admin and one of the customer; each token makes all calls of the description.
"""

import json
import pathlib
import ssl
import subprocess
import sys
import time
import urllib.request

HUBD, FOLDER, TEST = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
ADDRESS = "127.0.0.1:18443"
URL = f"https://{ADDRESS}"

# Below what one token may do in a minute.
RATE = "40/s"

# The hub promises these of every answer. What a call of good form may be refused for is in the description as well, so
# `positive_data_acceptance` is not among them: nearly all calls name a host, a job or a token that is not there.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth"

# Agents call these with a certificate, and people without a token: a token does not reach them. Two end the run itself.
LEFT_OUT = r"^/v1/(agent/|enroll|restore$|renew|login|logout|password|session$|totp|sign-in-link|sessions/)"


def call(method, path, token, body=None):
    context = ssl.create_default_context(cafile=str(FOLDER / "ca.pem"))
    request = urllib.request.Request(f"{URL}{path}", method=method, headers={"authorization": f"Bearer {token}"})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        return json.load(answer)["data"]


def wait_until_ready(hub):
    for _ in range(600):
        if hub.poll() is not None:
            sys.exit(f"hubd ended with {hub.returncode}")
        try:
            context = ssl.create_default_context(cafile=str(FOLDER / "ca.pem"))
            urllib.request.urlopen(f"{URL}/readyz", context=context, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("hubd does not get ready")


def run(name, token, seed):
    print(f"=== {name}", flush=True)
    # Not as a header of every call: `ignored_auth` leaves this one out.
    (FOLDER / "schemathesis.toml").write_text(f'[auth.openapi.token]\nbearer = "{token}"\n')
    words = [
        TEST, "run", f"{URL}/v1/openapi.json", "--tls-verify", str(FOLDER / "ca.pem"),
        "--checks", CHECKS, "--exclude-path-regex", LEFT_OUT,
        "--rate-limit", RATE, "--phases", "examples,coverage,fuzzing", "--max-examples", "20",
        "--seed", str(seed), "--no-color", "--request-retries", "2", "--suppress-health-check", "all", "--warnings", "off",
    ]
    words += sys.argv[4:]
    return subprocess.run(words, cwd=FOLDER, check=False).returncode


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "hubd.log", "w") as log:
        hub = subprocess.Popen([HUBD, "serve", "--dir", FOLDER, "--listen", ADDRESS], stdout=log, stderr=log)
    try:
        wait_until_ready(hub)
        admin = (FOLDER / "admin-token").read_text().strip()
        call("POST", "/v1/customers", admin, {"name": "acme"})
        scope = {"kind": "customer", "customer": "acme"}
        ann = {"name": "ann", "role": "customer", "scope": scope, "days": 1}
        customer = call("POST", "/v1/operators", admin, ann)["token"]
        # A second admin: the run may revoke the first, and must not change its own.
        tester = {"name": "tester", "role": "admin", "days": 1}
        admin = call("POST", "/v1/operators", admin, tester)["token"]
        codes = [run("admin", admin, 1), run("customer", customer, 2)]
        if hub.poll() is not None:
            sys.exit(f"hubd ended with {hub.returncode}")
        sys.exit(max(codes))
    finally:
        hub.terminate()
        hub.wait(timeout=30)


main()
