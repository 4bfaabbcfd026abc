"""moto's S3 on a free port of this machine, for the tests of object stores."""

import logging
import os
import urllib.request
import uuid

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class ObjectServer:
    """A server in a thread; while it runs the environment points to it, for processes that the tests start too."""

    def __init__(self):
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.address = f"http://{host}:{port}"
        self._before = {name: os.environ.get(name) for name in (*CREDENTIALS, "AWS_ENDPOINT_URL", "AWS_REGION")}
        os.environ.pop("AWS_REGION", None)
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=self.address)

    def close(self):
        self._server.stop()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def bucket(self):
        """The URL of a new, empty bucket."""
        name = f"bucket-{uuid.uuid4().hex[:8]}"
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/{name}", method="PUT")).close()
        return f"s3://{name}"
