import { deflateSync } from "node:zlib";

const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex");
const bytes = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)));
const number = (value: number, length: 2 | 4, order: "BE" | "LE"): Buffer => {
  const buffer = Buffer.alloc(length);
  if (order === "BE") buffer.writeUIntBE(value, 0, length);
  else buffer.writeUIntLE(value, 0, length);
  return buffer;
};

/** A PNG of one colour; `before` are chunks between its header and its pixels. */
export function png(width: number, height: number, ...before: Buffer[]): Buffer {
  const header = bytes(number(width, 4, "BE"), number(height, 4, "BE"), hex("08 00 00 00 00"));
  const pixels = deflateSync(Buffer.alloc(Math.min((width + 1) * height, 10_000)));
  return bytes(hex("89504e470d0a1a0a"), pngChunk("IHDR", header), ...before, pngChunk("IDAT", pixels), pngChunk("IEND", bytes()));
}

/** Its checksum is invalid: readers of the head do not check it. */
export function pngChunk(name: string, data: Buffer): Buffer {
  return bytes(number(data.length, 4, "BE"), name, data, hex("00000000"));
}

/** The head of a JPEG, up to its scan; `before` are segments in front of its frame. */
export function jpeg(width: number, height: number, { before = [] as Buffer[], frame = 0xc0 } = {}): Buffer {
  const size = bytes(hex("08"), number(height, 2, "BE"), number(width, 2, "BE"), hex("01 011100"));
  return bytes(
    hex("ffd8"),
    jpegSegment(0xe0, bytes("JFIF\0", hex("0102 00 0001 0001 00 00"))),
    ...before,
    jpegSegment(frame, size),
    jpegSegment(0xda, hex("01 0100 003f00")),
    hex("37 ffd9"),
  );
}

export function jpegSegment(marker: number, data: Buffer): Buffer {
  return bytes(Buffer.from([0xff, marker]), number(data.length + 2, 2, "BE"), data);
}

/** A segment that says how the picture is to be turned. */
export function exifOrientation(orientation: number): Buffer {
  const entry = bytes(hex("0112 0003 00000001"), number(orientation, 2, "BE"), hex("0000"));
  return jpegSegment(0xe1, bytes("Exif\0\0", "MM", hex("002a 00000008 0001"), entry, hex("00000000")));
}

export function gif(width: number, height: number, version = "89a"): Buffer {
  const size = bytes(number(width, 2, "LE"), number(height, 2, "LE"));
  return bytes("GIF", version, size, hex("80 00 00 ffffff 000000 2c 0000 0000 0100 0100 00 02 02 4401 00 3b"));
}

/** The head of a WebP: lossy, lossless or extended. */
export function webp(width: number, height: number, coding: "VP8 " | "VP8L" | "VP8X" = "VP8 "): Buffer {
  const minusOne = (value: number): Buffer => number(value - 1, 4, "LE").subarray(0, 3);
  const heads = {
    "VP8 ": bytes(hex("d00100 9d012a"), number(width, 2, "LE"), number(height, 2, "LE"), hex("0000")),
    VP8L: bytes(hex("2f"), number((width - 1) | ((height - 1) << 14), 4, "LE"), hex("00000000 00")),
    VP8X: bytes(hex("00 000000"), minusOne(width), minusOne(height)),
  };
  const chunk = bytes(coding, number(heads[coding].length, 4, "LE"), heads[coding]);
  return bytes("RIFF", number(chunk.length + 4, 4, "LE"), "WEBP", chunk);
}

/** A page of Ogg that begins a stream with this packet. */
export function ogg(packet: string): Buffer {
  const lacing = Buffer.from([1, packet.length]);
  return bytes("OggS", hex("00 02 0000000000000000 01000000 00000000 00000000"), lacing, packet);
}

/** The box that an MP4, and what is built like it, begins with. */
export function fileTypeBox(brand: string, ...compatible: string[]): Buffer {
  const size = number(16 + 4 * compatible.length, 4, "BE");
  return bytes(size, "ftyp", brand, hex("00000200"), ...compatible, number(16, 4, "BE"), "moov", hex("0000000000000000"));
}

/** Matroska's head, and WebM's. */
export function ebml(documentType: string): Buffer {
  const name = bytes(hex("4282"), Buffer.from([0x80 | documentType.length]), documentType);
  const header = bytes(hex("428681 01 42f781 01 42f281 04 42f381 08"), name, hex("428781 04 428581 02"));
  return bytes(hex("1a45dfa3"), Buffer.from([0x80 | header.length]), header, hex("18538067 01ffffffffffffff"));
}

/** An ID3 tag with a title and room of `length` bytes in all, before what follows. */
export function id3(length: number, ...following: Buffer[]): Buffer {
  const sizes = [21, 14, 7, 0].map((shift) => (length >> shift) & 0x7f);
  const title = bytes("TIT2", hex("00000004 0000 00"), "abc");
  const room = Buffer.alloc(length);
  title.copy(room, 0, 0, length);
  return bytes("ID3", hex("040000"), Buffer.from(sizes), room, ...following);
}

/** MPEG 1, layer III, 128 kbit/s: frames of silence. */
export const mp3Frames: Buffer = bytes(...Array.from({ length: 3 }, () => bytes(hex("fffb9064"), Buffer.alloc(414))));
/** MPEG 4 AAC LC in ADTS. */
export const aacFrames: Buffer = bytes(...Array.from({ length: 3 }, () => hex("fff15080 01bffc de0400 2a00")));
export const flac: Buffer = bytes("fLaC", hex("80000022 1000 1000 000000 000000 0ac442f0 00000000"), Buffer.alloc(16));

/** One small real head for each type of media (specification 4.5, rule 4). */
export const mediaSamples: Readonly<Record<string, Buffer>> = {
  "image/jpeg": jpeg(3, 2),
  "image/png": png(3, 2),
  "image/gif": gif(3, 2),
  "image/webp": webp(3, 2),
  "audio/mpeg": id3(100, mp3Frames),
  "audio/mp3": mp3Frames,
  "audio/opus": ogg("OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0"),
  "audio/aac": aacFrames,
  "audio/flac": flac,
  "audio/wav": bytes(
    "RIFF",
    hex("2c000000"),
    "WAVEfmt ",
    hex("10000000 0100 0100 44ac0000 88580100 0200 1000"),
    "data",
    hex("08000000 0000000000000000"),
  ),
  "audio/ogg": ogg("\x01vorbis\0\0\0\0\x02\x44\xac\0\0\0\0\0\0\x80\xb5\x01\0\0\0\0\0\xb8\x01"),
  "video/mp4": fileTypeBox("isom", "isom", "iso2", "avc1", "mp41"),
  "video/webm": ebml("webm"),
};
