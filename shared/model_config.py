"""Base classes of the configuration's sections, and the sections of the networks."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Decay = Annotated[float, Field(ge=0.0, lt=1.0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ConfigSection(BaseModel):
    """A frozen, strict group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class NetworkConfig(ConfigSection):
    """The sizes of a network, which its weights must fit."""


class DecoderLevel(ConfigSection):
    """Blocks of the decoder at a lower frame rate, between the first and the last blocks of the level above."""

    rate: Annotated[int, Field(ge=2, le=16)]
    """Frames, or positions of the level above, for which one position stands."""
    width: PositiveInt
    """D of these blocks; even, and divisible by 2 * heads."""
    blocks: PositiveInt
    """ConvNeXt blocks, each followed by self-attention among all positions if there are heads."""
    heads: Annotated[int, Field(ge=0)]
    """Heads of the self-attention; 0: none."""
    expansion: PositiveInt
    """Hidden width of a block as a multiple of width."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % max(2, 2 * self.heads):
            raise ValueError(f"width {self.width} is not divisible by 2 * heads ({max(2, 2 * self.heads)})")
        return self


class ModelConfig(NetworkConfig):
    """Acoustic model. `size` alone takes the other fields from configs/<size>.yaml."""

    size: str
    """Name of the file in configs/ that gives the fields not set in this section."""
    text_width: PositiveInt
    """D of the text encoder; divisible by 2 * text_heads (rotary positions)."""
    text_blocks: PositiveInt
    """Transformer blocks of the text encoder."""
    text_heads: PositiveInt
    """Attention heads of the text encoder."""
    text_expansion: PositiveInt
    """Hidden width of a Transformer block's perceptron as a multiple of text_width."""
    prenet_layers: PositiveInt
    """Convolutions before the Transformer blocks."""
    prenet_kernel: PositiveInt
    """Width of those convolutions, tokens; odd."""
    duration_width: PositiveInt
    """Channels of the duration predictor."""
    duration_layers: PositiveInt
    """Convolutions of the duration predictor."""
    duration_kernel: PositiveInt
    """Width of those convolutions, tokens; odd."""
    decoder_width: PositiveInt
    """D of the flow-matching decoder; even."""
    decoder_blocks: PositiveInt
    """ConvNeXt blocks of the decoder."""
    decoder_kernel: PositiveInt
    """Width of the decoder's depthwise convolutions, frames; odd."""
    decoder_expansion: PositiveInt
    """Hidden width of a decoder block as a multiple of decoder_width."""
    decoder_levels: Annotated[list[DecoderLevel], Field(max_length=4)]
    """Levels of lower frame rates in the middle of the decoder, each inside the one before; []: all blocks work at the
    full frame rate."""
    dropout: Fraction
    """Share of activations dropped in training, in all parts but the decoder and the duration predictor."""
    duration_dropout: Fraction
    """The same in the duration predictor, which is the first to overfit."""
    voice_from: Literal["table", "recording"] = "table"
    """Source of the voice: a table of the corpus' speakers, or any recording (`--speaker-wav`), which a model of many
    people imitates. Both stages need `recording`: the cache then holds embeddings of the speakers."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.text_width % (2 * self.text_heads):
            raise ValueError(f"text_width {self.text_width} is not divisible by 2 * text_heads ({2 * self.text_heads})")
        for name in ("prenet_kernel", "duration_kernel", "decoder_kernel"):
            if getattr(self, name) % 2 == 0:
                raise ValueError(f"{name} {getattr(self, name)} is even, expected an odd width")
        if self.decoder_width % 2:
            raise ValueError(f"decoder_width {self.decoder_width} is odd, expected an even width")
        return self


class VocoderConfig(NetworkConfig):
    """Vocoder: the network from mel to samples, and the discriminators that train it."""

    width: PositiveInt = 192
    """D of the ConvNeXt blocks."""
    blocks: PositiveInt = 4
    """ConvNeXt blocks."""
    kernel: PositiveInt = 7
    """Width of the depthwise convolutions, frames."""
    expansion: PositiveInt = 3
    """Hidden width of a block's perceptron as a multiple of width."""
    discriminator_width: PositiveInt = 96
    """Channels of the discriminators' convolutions."""
