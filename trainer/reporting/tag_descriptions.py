"""A sentence for every tag of a run's TensorBoard, which shows it behind the (i) of a chart."""

_LOSSES = {
    "loss": "the weighted sum of the losses.",
    "prior": "half the squared error of the mel predicted from the text alone, per mel value.",
    "flow": "the squared error of the decoder's vector field, per mel value; the one to watch.",
    "duration": "the deviance of the predicted token durations, per token.",
    "spectrum": "the difference between the spectra of speech and recording at five resolutions.",
    "mel": "the mean absolute difference between the log-mels of speech and recording.",
    "pitch": "the errors of the pitch (log Hz) and of the voicing that are read off the mel.",
}
DESCRIPTIONS = {
    **{f"train/{name}": f"On training batches since the last point: {text}" for name, text in _LOSSES.items()},
    **{f"validation/{name}": f"On the validation split: {text}" for name, text in _LOSSES.items()},
    "train/adversary": "How far the discriminators are from taking the speech for a recording.",
    "train/features": "The relative difference between what the discriminators see in speech and in recordings.",
    "train/discriminators": "The squared error of the discriminators on speech and recordings; 0.5 is chance.",
    "train/gradient_norm": "The norm of the gradient before clipping, without duration predictor or discriminators.",
    "train/duration_gradient_norm": "The norm of the duration predictor's gradient before clipping.",
    "train/discriminator_gradient_norm": "The norm of the discriminators' gradient before clipping.",
    "train/learning_rate": "The learning rate: it warms up, stays, and decays at the end of the run.",
    "train/skipped": "The share of updates skipped because a loss or gradient was not finite; 0 is good.",
    "train/useful_frames": "Mel frames of speech in a batch, without the padding.",
    "train/step_seconds": "Seconds from the end of one step to the end of the next.",
    "train/input_wait_share": "The share of the step time spent waiting for the input pipeline; near 0 is good.",
    "train/outside_share": "The share of the time spent outside steps: validation, samples, checkpoints.",
    "train/useful_frames_per_second": "Mel frames of speech, without the padding, trained on in a second.",
    "train/traces": "Traces of training steps so far; with locked shapes it stays at the number of buckets.",
    "train/unread_clips": "Clips of a batch whose audio could not be read; 0 is good.",
    "evaluation/relative_mcd": "The cepstral distance of the samples to their recordings, divided by that of the "
    "nearest recording of another sentence; lower is better, 1 is no closer than another sentence.",
    "evaluation/frechet_distance": "The Fréchet distance between the mel patches of all samples and of all their "
    "recordings; lower is better, and too high for fewer than a few dozen sentences.",
    "evaluation/log_f0_error": "The root mean square difference of ln F0 from the recordings; lower is better.",
    "evaluation/voicing_error": "The share of frames voiced in only one of sample and recording; lower is better.",
    "evaluation/shimmer": "The difference between the levels of neighbouring periods in the samples: roughness.",
    "evaluation/duration_error": "The difference in length from the recordings, as a share of theirs; lower is better.",
    "evaluation/mcd_db": "The mel-cepstral distance of the samples to their recordings after time warping, in dB; "
    "lower is better.",
    "evaluation/mel_error": "The mean absolute difference between log-mels of samples and recordings; lower is better.",
    "text": "The sentence that is spoken, decoded from its tokens.",
    "recording": "The mel of the recording through the vocoder: the best that the samples can sound like.",
    "speech": "The sentence as the averaged weights speak it at this step.",
    "mel": "The mel of the recording above that of the synthesised speech.",
    "alignment": "The mel of the recording, and below it the token that each frame is aligned to.",
}
"""Description by tag; for the tags of a sentence, by their prefix before the clip's id."""
