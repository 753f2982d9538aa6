"""How somebody is refused: a status of HTTP and one sentence, always in the same form."""

from __future__ import annotations

from starlette.responses import JSONResponse


class Refused(Exception):
    """Not this, not now, or not for you."""

    def __init__(self, code: int, sentence: str, again: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        #: seconds after which it may be worth to ask again
        self.again = again

    def answer(self) -> JSONResponse:
        """What is sent."""
        headers = {"WWW-Authenticate": "Bearer"} if self.code == 401 else {}
        if self.again is not None:
            headers["Retry-After"] = str(self.again)
        sentence = str(self).encode("utf-8", "replace").decode()
        return JSONResponse({"error": sentence}, self.code, headers)
