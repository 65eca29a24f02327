"""stub."""


def detect_content_type(content: str) -> str:
    return "note"
