"""A mail server on a loopback port, for tests: aiosmtpd of Debian's package python3-aiosmtpd.

Arguments: starttls, tls or plain; a certificate; its key. Standard output: the port, then one JSON line for each mail.
"""

import asyncio
import email
import email.policy
import json
import logging
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone"):
            return "550 5.1.1 no such user"
        if address.startswith("later"):
            return "451 4.7.1 greylisted"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        encrypted = server.transport.get_extra_info("ssl_object")
        print(
            json.dumps(
                {
                    "tls": encrypted.version() if encrypted else None,
                    "user": session.auth_data.login.decode() if session.auth_data else None,
                    "hello": session.host_name,
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "headers": {name.lower(): str(value) for name, value in mail.items()},
                    "ascii": envelope.content.isascii(),
                    "longest_line": max(len(line) for line in envelope.content.split(b"\r\n")),
                    "defects": [str(defect) for defect in mail.defects],
                    "text": mail.get_content().replace("\r\n", "\n"),
                }
            ),
            flush=True,
        )
        if envelope.mail_from.startswith("busy"):
            return "452 4.3.1 no space"
        if envelope.mail_from.startswith("spam"):
            return "554 5.7.1 refused: correct horse"
        return "250 2.0.0 accepted"


def authenticate(server, session, envelope, mechanism, data):
    right = data.login == b"holdfast" and data.password == b"correct horse"
    return AuthResult(success=right, handled=right, auth_data=data)


async def main(mode, certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def session():
        return SMTP(
            Handler(),
            hostname="mail.test",
            tls_context=context if mode == "starttls" else None,
            require_starttls=mode == "starttls",
            authenticator=authenticate,
            auth_required=mode != "plain",
            auth_require_tls=mode == "starttls",
            loop=asyncio.get_running_loop(),
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context if mode == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The library warns of its own use of an old name.
logging.disable(logging.WARNING)
asyncio.run(main(*sys.argv[1:4]))
