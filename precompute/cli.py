"""`xtts-precompute`: the commands of stage 1. Heavy imports happen inside the commands."""

import sys
from pathlib import Path

import click

from xtts.shared.config_flags import DEFAULT_CACHE, config_options, resolve
from xtts.shared.errors import counted_noun, report_errors
from xtts.shared.system.machine import usable_cores

_FOLDER = click.Path(path_type=Path)

_cache_option = click.option(
    "--cache", metavar="DIR|URL", is_flag=False, flag_value=DEFAULT_CACHE, default=DEFAULT_CACHE, show_default=True,
    help="Cache: a folder, or a URL in an object store such as s3://BUCKET/FOLDER.",
)
_workers_option = click.option(
    "--workers", type=click.IntRange(0), default=usable_cores,
    help="Number of worker processes; 0 runs in this process, for a debugger.  [default: one per core]",
)
_engine_option = click.option(
    "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
    help="Where workers run: processes of this machine, or the Ray cluster at RAY_ADDRESS, else a new one.",
)
_layout_option = click.option(
    "--layout", metavar="NAME",
    help="Layout of the corpus, if it is not recognised: ljspeech, piper, common-voice, table, quoted, kaldi, "
    "nemo, vctk, parquet, webdataset, libritts or folder.",
)
_columns_option = click.option(
    "--columns", metavar="KEY=COLUMN,...", help="Columns of a CSV, TSV or Parquet file, by number from 0 or by name: "
    "id, file, text, normalised, speaker, language. Needs text, and id or file."
)
_speakers_option = click.option(
    "--speakers", metavar="folders|one", help="Who speaks, if no list says: each folder another person, or one person "
    "throughout.  [default: by the folders' names]"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lockstep-tts")
def main() -> None:
    """Turn a speech corpus into fixed-shape features for xtts-train."""


@main.command()
@click.option(
    "--data", metavar="[NAME=]PATH", required=True, multiple=True,
    help="Corpus: a folder of recordings with their texts (LJSpeech, Piper, VCTK, ...), or a file that lists clips. "
    "Several corpora: repeat it, or give a YAML file that lists them.",
)
@_layout_option
@_columns_option
@_speakers_option
@_cache_option
@config_options
@_workers_option
@_engine_option
@click.option(
    "--lexicon", metavar="FILE",
    help="File of pronunciations, a line each: word, tab, [[IPA]] or a respelling (text.lexicon).",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N",
    help="Number of clips for a trial: the first of each corpus, in equal shares.  [default: all]",
)
@click.option("--fresh", is_flag=True, help="Full rebuild: keep nothing of an earlier cache.")
@click.option("--dry-run", is_flag=True, help="Preview: print what would be built and why, and write nothing.")
def build(
    data: tuple[str, ...], layout: str | None, columns: str | None, speakers: str | None, cache: str,
    config: tuple[str, ...], assignments: tuple[str, ...], flags: dict[str, object], workers: int, engine: str,
    lexicon: str | None, limit: int | None, fresh: bool, dry_run: bool,
) -> None:
    """Build the cache of a corpus, or bring it up to date.

    xtts-train reads the cache. Run the command again after a change or a crash: it does only what remains.
    """
    with report_errors():
        from xtts.precompute.workers.open_pool import open_pool
        from xtts.precompute.workers.stopping import stoppable

        with open_pool(workers, engine) as pool:  # before numpy is imported, see `open_pool`
            from xtts.precompute.pipeline.build_cache import explain_build, run_build
            from xtts.precompute.pipeline.build_request import make_request
            from xtts.precompute.view.terminal import Display, build_summary
            from xtts.shared.cache.object_store import local_build, upload_cache

            settings = resolve(config, assignments, flags | ({"text.lexicon": lexicon} if lexicon else {}))
            folder = local_build(cache, fresh=fresh)
            with stoppable(cache), Display() as display:
                request = make_request(
                    data, folder, settings, limit=limit, fresh=fresh, layout=layout, columns=columns, speakers=speakers,
                )
                if dry_run:
                    explain_build(request, pool, display)
                    return
                report = run_build(request, pool, display)
            upload_cache(folder, cache)
        click.echo(build_summary(report, cache))


@main.command()
@_cache_option
@click.option(
    "--against", metavar="DATA", multiple=True,
    help="Corpus to compare the cache with, as --data of build: finds changed, added and removed clips.",
)
@click.option(
    "--deep", type=click.IntRange(0), is_flag=False, flag_value=100, metavar="[N]",
    help="Number of clips whose mels are recomputed, 0 for all (100 without a value); needs --against.",
)
@click.option("--repair", is_flag=True, help="Repair: rewrite the broken files from the corpus of --against.")
@_layout_option
@_columns_option
@_speakers_option
@_workers_option
@_engine_option
def verify(
    cache: str, against: tuple[str, ...], deep: int | None, repair: bool, layout: str | None, columns: str | None,
    speakers: str | None, workers: int, engine: str,
) -> None:
    """Check a cache: every checksum, shape and count.

    Exit code 0: sound, 1: damaged, 2: the check could not run.
    """
    with report_errors():
        from xtts.precompute.library import verify_cache
        from xtts.precompute.view.terminal import Display
        from xtts.precompute.workers.stopping import stoppable

        with stoppable(cache), Display() as display:
            findings = verify_cache(
                cache, against=against or None, deep=deep, repair=repair, workers=workers, layout=layout,
                columns=columns, speakers=speakers, engine=engine, progress=display,
            )
        for finding in findings:
            click.echo(str(finding))
        click.echo(f"{cache}: {counted_noun(len(findings), 'finding')}" if findings else f"{cache}: sound")
        sys.exit(1 if findings else 0)


@main.command()
@_cache_option
def stats(cache: str) -> None:
    """Print statistics of a cache: percentiles of the lengths, and the padding of 1 to 12 buckets."""
    with report_errors():
        from xtts.precompute.features.filters import reject_lines
        from xtts.precompute.view.terminal import stats_text
        from xtts.shared.cache.cache_spec import load_spec
        from xtts.shared.cache.clip_index import read_index, table_of
        from xtts.shared.cache.object_store import local_cache
        from xtts.shared.cache.stats import corpus_stats
        from xtts.shared.system.folder_lock import ReadLock

        folder = local_cache(cache)
        with ReadLock(folder):
            index = folder / load_spec(folder).index_file
            rows, statistics = read_index(index), corpus_stats(index)
        rejected = reject_lines(table_of([row for row in rows if not row.is_kept]))
        click.echo(stats_text(statistics, rejected))


@main.command()
@_cache_option
@click.argument("clip_id", metavar="ID")
@click.option("--out", type=_FOLDER, default=".", help="Folder for ID.png and ID.wav.  [default: the current one]")
def inspect(cache: str, clip_id: str, out: Path) -> None:
    """Show one clip: a picture of its mel, and the sound that the mel gives (Griffin-Lim)."""
    with report_errors():
        from xtts.precompute.view.inspect_clip import inspect_clip
        from xtts.shared.cache.object_store import local_cache

        click.echo(inspect_clip(local_cache(cache), clip_id, out))


@main.command()
@_cache_option
@click.option("--out", type=_FOLDER, default="report.html", show_default=True, metavar="FILE", help="File of the page.")
@click.option(
    "--data", metavar="[NAME=]PATH", multiple=True,
    help="Corpus, as --data of build: its recordings are played beside what their mels preserve.",
)
def report(cache: str, out: Path, data: tuple[str, ...]) -> None:
    """Write a report, one HTML page: a verdict, clips to hear first, letters, lengths, rejected clips."""
    with report_errors():
        from xtts.precompute.view.html_report import write_report
        from xtts.precompute.view.terminal import Display
        from xtts.shared.cache.object_store import local_cache

        with Display() as display:
            summary = write_report(local_cache(cache), out, progress=display, data=data)
        click.echo(summary)


@main.command("sample-corpus")
@click.argument("out", type=_FOLDER)
@click.option("--clips", type=click.IntRange(1), default=200, show_default=True, help="Number of clips.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the sentences.")
@click.option(
    "--language", default="en", show_default=True, metavar="CODE", help="Language: en, cmn, de, es, fa, hi or ru."
)
@_workers_option
def sample_corpus(out: Path, clips: int, seed: int, language: str, workers: int) -> None:
    """Make a corpus to experiment with: sentences spoken by espeak-ng into OUT, in the LJSpeech layout."""
    with report_errors():
        from xtts.precompute.sample.sample_corpus import make_sample_corpus
        from xtts.precompute.view.terminal import Display
        from xtts.precompute.workers.stopping import stoppable

        with stoppable(out), Display() as display:
            seconds = make_sample_corpus(
                out, clips=clips, seed=seed, language=language, workers=workers, progress=display
            )
        minutes = f"{seconds / 60:.1f} minutes of speech" + ("" if language == "en" else f" in {language}")
        click.echo(f"{out}: {counted_noun(clips, 'clip')}, {minutes}")


@main.command()
@click.option(
    "--data", metavar="[NAME=]PATH", required=True, multiple=True, help="Corpus or corpora, as --data of build.",
)
@_layout_option
@_columns_option
@_speakers_option
@click.option("--out", type=_FOLDER, required=True, metavar="CORPUS", help="Folder of the corpus, a new one.")
@_workers_option
def questions(
    data: tuple[str, ...], layout: str | None, columns: str | None, speakers: str | None, out: Path, workers: int
) -> None:
    """Make a corpus with questions: the clips of DATA, and its statements with the pitch raised at the end.

    For recordings with few questions, from which a voice would not learn what a question mark means.
    """
    with report_errors():
        from xtts.precompute.workers.open_pool import open_pool
        from xtts.precompute.workers.stopping import stoppable

        with open_pool(workers) as pool:  # before numpy is imported, see `open_pool`
            from xtts.precompute.questions.question_corpus import make_question_corpus
            from xtts.precompute.view.terminal import Display

            with stoppable(out, "run the same command again, from the beginning"), Display() as display:
                summary = make_question_corpus(
                    data, out, pool, display, layout=layout, columns=columns, speakers=speakers
                )
        click.echo(summary)


@main.command()
@click.argument("audio", type=_FOLDER, nargs=-1, required=True)
@click.option("--out", type=_FOLDER, required=True, metavar="CORPUS", help="Folder of the corpus, new or to continue.")
@click.option("--language", metavar="CODE", help="Language, such as en.  [default: detected in each recording]")
@click.option(
    "--asr", metavar="NAME",
    help="Size of Whisper to download (tiny, base, small, medium, large-v3), or the folder of a faster-whisper model."
    "  [default: that of the corpus, or base]",
)
@click.option(
    "--channel", type=click.IntRange(0), metavar="N",
    help="Channel to take of recordings with several, 0 the left one.  [default: the mean]",
)
def transcribe(audio: tuple[Path, ...], out: Path, language: str | None, asr: str | None, channel: int | None) -> None:
    """Make a corpus from recordings without texts: AUDIO, files or folders, in clips that Whisper transcribes.

    Run it again after a stop, or with more or changed recordings: it keeps finished work and your corrections in
    metadata.csv. With another model or language, it transcribes again what nobody has corrected.
    """
    with report_errors():
        from xtts.precompute.transcribe.transcribe_corpus import transcribe_corpus
        from xtts.precompute.view.terminal import Display
        from xtts.precompute.workers.stopping import stoppable
        from xtts.shared.audio.recogniser import Recogniser

        with stoppable(out), Display() as display:
            summary = transcribe_corpus(
                out, audio, Recogniser, asr=asr, language=language, channel=channel, progress=display
            )
        click.echo(summary)


if __name__ == "__main__":  # `xtts-voice` runs the build as a module
    main()
