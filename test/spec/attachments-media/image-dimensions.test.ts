import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IMAGE_HEAD_BYTES, imageDimensions, JpegHead } from "../../../plugins/src/attachments-media/image-dimensions.ts";
import {
  exifOrientation,
  fileTypeBox,
  gif,
  jpeg,
  jpegSegment,
  mediaSamples,
  png,
  pngChunk,
  webp,
} from "../../harness/media-samples.ts";

const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex");
const xmp = jpegSegment(0xe1, Buffer.from("http://ns.adobe.com/xap/1.0/\0<x/>"));
const segmentOf = (bytes: number): Buffer => jpegSegment(0xe2, Buffer.alloc(bytes));

describe("width and height of an image (2.8)", () => {
  it.each<[string, Buffer, number, number]>([
    ["a JPEG", jpeg(640, 480), 640, 480],
    ["the largest JPEG", jpeg(65_535, 65_535), 65_535, 65_535],
    ["a progressive JPEG", jpeg(640, 480, { frame: 0xc2 }), 640, 480],
    ["a JPEG in arithmetic coding", jpeg(640, 480, { frame: 0xc9 }), 640, 480],
    ["a JPEG behind 192 KiB of metadata", jpeg(640, 480, { before: [1, 2, 3].map(() => segmentOf(65_000)) }), 640, 480],
    ["a PNG", png(640, 480), 640, 480],
    ["a PNG of one pixel", png(1, 1), 1, 1],
    ["a PNG of a great width", png(2 ** 31 - 1, 1), 2 ** 31 - 1, 1],
    ["an animated PNG", png(640, 480, pngChunk("acTL", hex("0000000100000000"))), 640, 480],
    ["a GIF", gif(640, 480), 640, 480],
    ["a GIF of the first version", gif(640, 480, "87a"), 640, 480],
    ["a lossy WebP", webp(640, 480), 640, 480],
    ["a lossless WebP", webp(640, 480, "VP8L"), 640, 480],
    ["an extended WebP", webp(640, 480, "VP8X"), 640, 480],
  ])("%s", (_what, head, width, height) => {
    expect(imageDimensions(head)).toEqual({ width, height });
  });

  it.each([1, 2, 3, 4])(
    "a JPEG that is turned by nothing or upside down has them as they are (orientation %i)",
    (orientation) => {
      expect(imageDimensions(jpeg(640, 480, { before: [exifOrientation(orientation)] }))).toEqual({ width: 640, height: 480 });
    },
  );

  it.each([5, 6, 7, 8])("a JPEG that lies on its side has them as a viewer shows it (orientation %i)", (orientation) => {
    expect(imageDimensions(jpeg(640, 480, { before: [exifOrientation(orientation)] }))).toEqual({ width: 480, height: 640 });
  });

  it.each([0, 9, 65_535])("a JPEG with an orientation that there is not has them as they are (%i)", (orientation) => {
    expect(imageDimensions(jpeg(640, 480, { before: [exifOrientation(orientation)] }))).toEqual({ width: 640, height: 480 });
  });

  it.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["a byte", hex("ff")],
    ["a text", Buffer.from("Just a text.\n")],
    ["an SVG image", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>')],
    ["a BMP", Buffer.concat([hex("424d 46000000 0000 0000 36000000 28000000 0a000000 0a000000"), Buffer.alloc(40)])],
    ["an ICO", hex("0000 0100 0100 10 10 00 00 0100 2000 00000000 16000000")],
    ["a Targa, which has no signature", Buffer.concat([hex("0000 02 0000 0000 00 0000 0000 0a00 0a00 1800"), Buffer.alloc(300)])],
    ["a film", fileTypeBox("isom")],
    ["a JPEG without a frame", hex("ffd8 ffe0 0004 0000 ffda 0008 01 0100 003f00 ffd9")],
    ["a JPEG whose frame is behind what is looked at", jpeg(640, 480, { before: [1, 2, 3, 4, 5].map(() => segmentOf(65_000)) })],
    ["a PNG without a width", png(0, 480)],
    ["a PNG without a height", png(640, 0)],
    ["a GIF without a height", gif(640, 0)],
    ["a JPEG without a height", jpeg(640, 0)],
    ["a PNG's signature", hex("89504e470d0a1a0a")],
  ])("are not told of %s", (_what, head) => {
    expect(imageDimensions(head)).toBeUndefined();
  });

  it("are never read from beyond what is given, also in a view of a larger buffer", () => {
    for (const sample of [jpeg(640, 480), png(640, 480), gif(640, 480), webp(640, 480), webp(640, 480, "VP8L")]) {
      const around = new Uint8Array(sample.length + 200).fill(0xaa);
      around.set(sample, 100);
      expect(imageDimensions(around.subarray(100, 100 + sample.length))).toEqual({ width: 640, height: 480 });
      for (let length = 0; length < sample.length; length++) {
        expect(imageDimensions(around.subarray(100, 100 + length))).toEqual(imageDimensions(sample.subarray(0, length)));
        expect([undefined, { width: 640, height: 480 }]).toContainEqual(imageDimensions(around.subarray(100, 100 + length)));
      }
    }
  });
});

describe("width and height of a JPEG that passes in pieces", () => {
  const profile = (count: number) => Array.from({ length: count }, () => segmentOf(65_000));
  const sizeOf = async (bytes: Buffer, pieceBytes: number) => {
    const head = new JpegHead();
    const passed: Uint8Array[] = [];
    const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) =>
      bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes),
    );
    for await (const piece of head.watch(Readable.from(pieces))) passed.push(piece);
    expect(Buffer.concat(passed).equals(bytes)).toBe(true);
    return head.dimensions();
  };

  it.each<[string, Buffer, number, number]>([
    ["without metadata", jpeg(640, 480), 640, 480],
    ["behind a profile of 16 MB", jpeg(640, 480, { before: profile(255) }), 640, 480],
    ["turned, with a profile before its orientation", jpeg(640, 480, { before: [...profile(20), exifOrientation(6)] }), 480, 640],
    ["with metadata that is no EXIF before it", jpeg(640, 480, { before: [xmp, exifOrientation(8)] }), 480, 640],
    ["with fill bytes", jpeg(640, 480, { before: [Buffer.alloc(100, 0xff), segmentOf(9)] }), 640, 480],
  ])("are found %s", async (_what, bytes, width, height) => {
    for (const size of [1021, 65_536, bytes.length]) expect(await sizeOf(bytes, size)).toEqual({ width, height });
    if (bytes.length < 10_000) expect(await sizeOf(bytes, 1)).toEqual({ width, height });
  });

  it.each<[string, Buffer]>([
    ["a JPEG without a frame", hex("ffd8 ffe0 0004 0000 ffda 0008 01 0100 003f00 ffd9")],
    ["a JPEG that breaks off", jpeg(640, 480).subarray(0, 25)],
    ["bytes between segments", jpeg(640, 480, { before: [hex("00")] })],
    ["a segment with an impossible length", jpeg(640, 480, { before: [hex("ffe2 0001")] })],
    ["nothing", Buffer.alloc(0)],
    ["fill bytes alone", Buffer.alloc(100_000, 0xff)],
  ])("are not found in %s", async (_what, bytes) => {
    for (const size of [1021, 65_536]) expect(await sizeOf(bytes, size)).toBeUndefined();
  });

  it("takes no memory for start markers that repeat", async () => {
    const before = process.memoryUsage().heapUsed;
    const head = new JpegHead();
    const starts = Buffer.alloc(64 * 1024, hex("ffd8"));
    for await (const _piece of head.watch(Readable.from(Array.from({ length: 128 }, () => starts))));
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
    expect(head.dimensions()).toBeUndefined();
  });

  it("are those of the whole image, in whatever pieces it passes", async () => {
    const segments = fc.array(fc.constantFrom(segmentOf(0), segmentOf(300), xmp, exifOrientation(6), hex("ffff"), hex("ff01")), {
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(segments, fc.integer({ min: 1, max: 400 }), async (before, size) => {
        const bytes = jpeg(640, 480, { before });
        const isTurned = before.some((each) => each.includes("Exif"));
        expect(await sizeOf(bytes, size)).toEqual(isTurned ? { width: 480, height: 640 } : { width: 640, height: 480 });
      }),
    );
  });
});

describe("hostile images", () => {
  const images = ["image/jpeg", "image/png", "image/gif", "image/webp"].map((type) => mediaSamples[type]!);
  const starts = [...images, webp(9, 9, "VP8L"), webp(9, 9, "VP8X"), jpeg(9, 9, { before: [exifOrientation(6)] })];
  const mutated = fc
    .tuple(fc.constantFrom(...starts), fc.array(fc.tuple(fc.nat(120), fc.nat(255)), { maxLength: 8 }), fc.nat(200))
    .map(([start, changes, length]) => {
      const bytes = Buffer.concat([start, Buffer.alloc(40)]).subarray(0, length);
      for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
      return bytes;
    });
  const othersStarts = fc
    .tuple(
      fc.constantFrom("icns", "\0\0\0\x0cjP  ", "II*\0", "MM\0*", "\xff\x0a", "P7\n", "8BPS", "\xabKTX 11", "<svg "),
      fc.uint8Array(),
    )
    .map(([start, rest]) => Buffer.concat([Buffer.from(start, "latin1"), rest]));

  it.each<[string, fc.Arbitrary<Uint8Array>]>([
    ["random bytes", fc.uint8Array({ maxLength: 500 })],
    ["images with bytes changed and cut off", mutated],
    ["the starts of other formats", othersStarts],
  ])("%s give sound numbers or undefined, and nothing is thrown", (_what, heads) => {
    fc.assert(
      fc.property(heads, (head) => {
        const found = imageDimensions(head);
        if (found === undefined) return;
        expect(Object.keys(found)).toEqual(["width", "height"]);
        for (const pixels of Object.values(found)) expect(Number.isSafeInteger(pixels) && pixels > 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it.each<[string, Buffer]>([
    ["segments without a length", hex("ffe00000")],
    ["segments that claim to be EXIF", hex("ffe1000a 45786966 0000 4d4d")],
    ["markers without end", hex("ff")],
    ["markers that overlap", hex("ffe1")],
    ["segments that reach beyond", hex("ffe1ffff")],
    ["names of other formats", Buffer.from("<svg '")],
  ])("a whole head of %s comes to an end", (_what, piece) => {
    const head = Buffer.alloc(4 * IMAGE_HEAD_BYTES, piece);
    expect(imageDimensions(head)).toBeUndefined();
    head.set([0xff, 0xd8]);
    expect(imageDimensions(head)).toBeUndefined();
  });
});
