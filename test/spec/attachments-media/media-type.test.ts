import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fitsSignature,
  MEDIA_TYPES,
  type MediaType,
  mediaTypeOf,
  mediaTypeOfExtension,
  SIGNATURE_BYTES,
} from "../../../plugins/src/attachments-media/media-type.ts";
import {
  aacFrames,
  ebml,
  fileTypeBox,
  flac,
  gif,
  id3,
  jpeg,
  mediaSamples,
  mp3Frames,
  ogg,
  png,
  pngChunk,
  webp,
} from "../../harness/media-samples.ts";

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex");
const typeOf = (mimeType: string): MediaType => MEDIA_TYPES.find((type) => type.mimeType === mimeType)!;

/** The declared types with which these bytes pass. */
async function passingAs(head: Uint8Array): Promise<string[]> {
  const fits = await Promise.all(MEDIA_TYPES.map((type) => fitsSignature(type, head)));
  return MEDIA_TYPES.filter((_, at) => fits[at]).map(({ mimeType }) => mimeType);
}

const MPEG_AUDIO = ["audio/mpeg", "audio/mp3"];
/** Those whose first bytes prove nothing. */
const UNSIGNED = [...MPEG_AUDIO, "audio/aac"];

describe("the types of media (4.5, rule 4)", () => {
  it("are these thirteen, each with its kind and its usual extension", () => {
    expect(MEDIA_TYPES.map(({ mimeType, kind, extension }) => `${mimeType} ${kind} ${extension}`)).toEqual([
      ...["image/jpeg image jpg", "image/png image png", "image/gif image gif", "image/webp image webp"],
      ...["audio/mpeg audio mp3", "audio/mp3 audio mp3", "audio/opus audio opus", "audio/aac audio aac"],
      ...["audio/flac audio flac", "audio/wav audio wav", "audio/ogg audio ogg"],
      ...["video/mp4 video mp4", "video/webm video webm"],
    ]);
  });

  it.each(["image/png", "IMAGE/PNG", " image/png ", "image/png; charset=binary", "image/png;", "Image/Png ; a=b"])(
    "are found by what is declared, whatever its case and its parameters: %s",
    (declared) => {
      expect(mediaTypeOf(declared)).toEqual({ mimeType: "image/png", kind: "image", extension: "png" });
    },
  );

  it.each([
    ...["", ";", "image/", "image", "png", "image/*", "*/*", "image/pngx", "xximage/png", "image/png, image/gif", "image /png"],
    ...[
      "image/svg+xml",
      "text/html",
      "application/xhtml+xml",
      "image/jpg",
      "image/avif",
      "audio/x-wav",
      "audio/mp4",
      "video/quicktime",
    ],
    ...["constructor", "application/octet-stream", "ımage/png"],
  ])("are not found by another declaration: %j", (declared) => {
    expect(mediaTypeOf(declared)).toBeUndefined();
  });

  it("are found by extension, the usual one of two that share it", () => {
    for (const type of MEDIA_TYPES) {
      const found = type.mimeType === "audio/mp3" ? typeOf("audio/mpeg") : type;
      expect(mediaTypeOfExtension(type.extension)).toEqual(found);
      expect(mediaTypeOfExtension(type.extension.toUpperCase())).toEqual(found);
    }
    for (const none of ["", ".png", "svg", "html", "png ", "exe", "__proto__"])
      expect(mediaTypeOfExtension(none)).toBeUndefined();
  });
});

describe("a media's declared type and its first bytes (open points 6)", () => {
  it.each(MEDIA_TYPES.map(({ mimeType }) => mimeType))(
    "a sample of %s passes as what it is, and as nothing else",
    async (mimeType) => {
      const alsoPassingAs: Readonly<Record<string, readonly string[]>> = {
        "audio/mpeg": MPEG_AUDIO,
        "audio/mp3": MPEG_AUDIO,
        "audio/opus": ["audio/opus", "audio/ogg"],
      };
      expect(await passingAs(mediaSamples[mimeType]!)).toEqual(alsoPassingAs[mimeType] ?? [mimeType]);
    },
  );

  it.each<[string, Buffer, readonly string[]]>([
    ["a JPEG that begins with EXIF", Buffer.concat([hex("ffd8 ffe1 0010"), latin1("Exif\0\0MM\0*")]), ["image/jpeg"]],
    ["a progressive JPEG", jpeg(1, 1, { frame: 0xc2 }), ["image/jpeg"]],
    ["an animated PNG", png(1, 1, pngChunk("acTL", hex("0000000100000000"))), ["image/png"]],
    [
      "a PNG whose profile reaches beyond the head",
      png(1, 1, pngChunk("iCCP", Buffer.alloc(2 * SIGNATURE_BYTES))),
      ["image/png"],
    ],
    ["a GIF of the first version", gif(1, 1, "87a"), ["image/gif"]],
    ["a lossless WebP", webp(1, 1, "VP8L"), ["image/webp"]],
    ["an extended WebP", webp(1, 1, "VP8X"), ["image/webp"]],
    ["MPEG audio, layer II", hex("fffd9004 00000000 00000000"), MPEG_AUDIO],
    ["MPEG 2 audio, layer III", hex("fff360c4 00000000 00000000"), MPEG_AUDIO],
    ["AAC of MPEG 2 with a checksum", hex("fff85080 01bffc de0400"), ["audio/aac"]],
    ["AAC behind a tag", id3(40, aacFrames), ["audio/aac"]],
    ["FLAC behind a tag", id3(40, flac), ["audio/flac"]],
    ["Ogg with FLAC", ogg("\x7fFLAC\x01\0\0\x01"), ["audio/ogg"]],
    ["Ogg with Speex", ogg("Speex   1.2"), ["audio/ogg"]],
    ["Ogg with a codec that nobody knows", ogg("fishead\0\x03\0"), ["audio/ogg"]],
    ["MP4 of later brands", fileTypeBox("mp42", "mp42"), ["video/mp4"]],
    ["MP4 for streaming", fileTypeBox("iso6", "dash"), ["video/mp4"]],
    ["MP4 from a shop", fileTypeBox("M4V ", "M4V "), ["video/mp4"]],
    ["MP4 that holds sound alone", fileTypeBox("M4A ", "isom"), ["video/mp4"]],
    ["MP4 whose first box is as long as `<` is numbered", fileTypeBox("isom", ...Array<string>(11).fill("iso2")), ["video/mp4"]],
  ])("%s passes", async (_what, head, types) => {
    expect(await passingAs(head)).toEqual(types);
  });

  it.each<[string, Buffer]>([
    ["a tag that reaches beyond the head", id3(100_000, mp3Frames)],
    ["a tag and then silence", id3(20, Buffer.alloc(300))],
    ["silence", Buffer.alloc(3000)],
    ["rubble before the first frame", Buffer.concat([hex("00112233445566778899aabbccddeeff"), mp3Frames])],
    ["AAC in LATM", hex("56e0 5a20 0011 1188 0000")],
    ["AAC in ADIF", Buffer.concat([latin1("ADIF"), hex("00 11 22 33")])],
    ["one byte", hex("00")],
  ])("what proves nothing passes as a type without a signature alone: %s", async (_what, head) => {
    expect(await passingAs(head)).toEqual(UNSIGNED);
  });

  it.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["an HTML page", latin1("<!DOCTYPE html><html><body><script>alert(1)</script>")],
    ["an HTML page in capitals", latin1("<HTML>")],
    ["an HTML page behind blank lines", latin1("\n\r\t \f <html>\0")],
    ["an HTML page with binary bytes", latin1("<html>\0\x01\x02\xff")],
    ["an HTML comment", latin1("<!-- \0 -->")],
    ["an HTML page in UTF-8 with its mark", latin1("\xef\xbb\xbf<html>\0")],
    ["an HTML page in UTF-16, little end first", Buffer.from("\ufeff<html>", "utf16le")],
    ["an HTML page in UTF-16, big end first", Buffer.from("\ufeff<html>", "utf16le").swap16()],
    ["an HTML page in UTF-16 without a mark", Buffer.from("<html>", "utf16le")],
    ["an HTML page in UTF-16, big end first, without a mark", Buffer.from("<html>", "utf16le").swap16()],
    ["an HTML page in UTF-16 behind blanks", Buffer.from(" \n<html>", "utf16le")],
    ["an HTML page in UTF-16, big end first, behind blanks", Buffer.from(" \n<html>", "utf16le").swap16()],
    ["a text in UTF-16 with its mark", Buffer.from("\ufeffhello", "utf16le")],
    ["an SVG image", latin1('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    ["an SVG image behind an XML declaration", latin1('<?xml version="1.0"?>\n<svg\0/>')],
    ["an SVG image behind the letters of a mark and of MP4", latin1("<svgftypisom\0\0")],
    ["a text", latin1("Just a text.\n")],
    ["a text in UTF-8", Buffer.from("Größe ∞\n")],
    ["JSON", latin1('{"a":1}')],
    ["a script behind the first letters of GIF", latin1("GIF=\0;alert(1)")],
    ["a GIF behind a text's mark", Buffer.concat([hex("efbbbf"), gif(1, 1)])],
    ["a PNG behind a tag", id3(20, png(1, 1))],
    ["a WebP behind a tag", id3(20, webp(1, 1))],
    ["a PNG behind a tag whose length has bits that don't count", Buffer.concat([hex("494433 0400 00 80808080"), png(1, 1)])],
    ["an MP4 behind a tag", id3(20, fileTypeBox("isom"))],
    ["a PDF", latin1("%PDF-1.7\n\0")],
    ["a ZIP", Buffer.concat([latin1("PK\x03\x04"), Buffer.alloc(60)])],
    ["a compressed SVG", gzipSync("<svg/>")],
    ["a compressed PNG", gzipSync(png(1, 1))],
    ["a program", Buffer.concat([latin1("MZ"), Buffer.alloc(100)])],
    ["a program of Linux", Buffer.concat([latin1("\x7fELF"), Buffer.alloc(100)])],
    ["a BMP", Buffer.concat([latin1("BM"), Buffer.alloc(60)])],
    ["a TIFF", Buffer.concat([latin1("II*\0"), hex("08000000 0000")])],
    ["an ICO", hex("00000100 0100 1010 0000")],
    ["a JPEG-LS", hex("ffd8 fff7 000b 08 0001 0001 01 011100")],
    ["an AVIF", fileTypeBox("avif", "mif1")],
    ["a HEIC", fileTypeBox("heic", "mif1")],
    ["a QuickTime film", fileTypeBox("qt  ")],
    ["a 3GPP film", fileTypeBox("3gp4")],
    ["a Matroska film", ebml("matroska")],
    ["an Ogg film", ogg("\x80theora\x03\x02\x01")],
    ["an AVI film", Buffer.concat([latin1("RIFF\x10\0\0\0AVI LIST")])],
    ["an AIFF", latin1("FORM\0\0\0\x10AIFFCOMM\0")],
    ["a MIDI", hex("4d546864 00000006 0000 0001 0060")],
  ])("%s passes as nothing", async (_what, head) => {
    expect(await passingAs(head)).toEqual([]);
  });

  it("is judged by the first bytes alone: what follows them changes nothing", async () => {
    for (const { mimeType } of MEDIA_TYPES) {
      const long = Buffer.concat([mediaSamples[mimeType]!, Buffer.alloc(SIGNATURE_BYTES, 0x2a)]);
      expect(await passingAs(long)).toEqual(await passingAs(long.subarray(0, SIGNATURE_BYTES)));
      expect(await passingAs(long)).toContain(mimeType);
    }
  });

  it("is judged alike in a view of a larger buffer", async () => {
    for (const { mimeType } of MEDIA_TYPES) {
      const sample = mediaSamples[mimeType]!;
      const around = new Uint8Array(sample.length + 200).fill(0x3c);
      around.set(sample, 100);
      expect(await passingAs(around.subarray(100, 100 + sample.length))).toEqual(await passingAs(sample));
    }
  });

  it("is settled for any bytes, and never as two formats with a signature at once", async () => {
    const starts = [...Object.values(mediaSamples), ...HOSTILE_STARTS];
    const heads = fc
      .tuple(fc.constantFrom(...starts), fc.nat(80), fc.uint8Array({ maxLength: 600 }))
      .map(([start, kept, rest]) => Buffer.concat([start.subarray(0, kept), rest]));
    await fc.assert(
      fc.asyncProperty(heads, async (head) => {
        const signed = (await passingAs(head)).filter((type) => !UNSIGNED.includes(type));
        expect(["", "audio/opus,audio/ogg", ...MEDIA_TYPES.map(({ mimeType }) => mimeType)]).toContain(signed.join());
      }),
      { numRuns: 500 },
    );
  });
});

/** What leads a recogniser into a parser of its own. */
const HOSTILE_STARTS = [
  ...[
    latin1("PK\x03\x04"),
    latin1("ID3\x04\0\0"),
    latin1("OggS"),
    latin1("II*\0"),
    latin1("MM\0*"),
    latin1("!<arch>\n"),
    latin1("\xef\xbb\xbf"),
  ],
  ...[hex("1a45dfa3"), hex("3026b2758e66cf11a6d9"), hex("89504e470d0a1a0a"), hex("0000000c6a5020200d0a870a"), hex("04000000")],
  ...[gzipSync(Buffer.alloc(100_000)), gzipSync(gzipSync(id3(100, png(1, 1))))],
];
