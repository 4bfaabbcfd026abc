"""What corpora call the facts about a clip, in the columns of a table or the keys of a JSON object."""

USUAL_NAMES = {
    "text": ("text", "transcription", "sentence", "transcript", "raw_text", "text_original"),
    "normalised": ("normalized_text", "text_normalized", "normalised_text", "text_normalised"),
    "speaker": ("speaker", "speaker_id", "client_id", "speaker_name"),
    "language": ("language", "lang", "locale"),
    "id": ("id", "_id", "utt_id"),
}
"""Names by fact, the first first."""
