import { imageMeta } from "image-meta";

export interface ImageDimensions {
  readonly width: number;
  readonly height: number;
}

/** The number of first bytes that `imageDimensions` reads. `JpegHead` leaves out the segments of a JPEG that are not needed. */
export const IMAGE_HEAD_BYTES = 256 * 1024;

/** The image formats of media (specification 4.5, rule 4), by their names in image-meta. */
const FORMATS: readonly string[] = ["jpg", "png", "gif", "webp"];

/**
 * Width and height in pixels as a viewer shows the image. If a JPEG's orientation rotates it by 90°, they are swapped. Reads the first
 * `IMAGE_HEAD_BYTES`, or the whole file if it is shorter, and decodes no pixels. Returns undefined if the size cannot be read, or if the
 * file is not a JPEG, PNG, GIF or WebP. Never throws.
 */
export function imageDimensions(head: Uint8Array): ImageDimensions | undefined {
  const found = metaOf(head.subarray(0, IMAGE_HEAD_BYTES));
  // image-meta refuses invalid sizes, except a height of 0.
  if (!found || !FORMATS.includes(found.type ?? "") || found.height === 0) return undefined;
  const { width, height, orientation = 1 } = found;
  // The EXIF orientations 5 to 8 rotate the image by 90°.
  const isTurned = orientation >= 5 && orientation <= 8;
  return isTurned ? { width: height, height: width } : { width, height };
}

/** Undefined if image-meta throws: for unknown formats, and for truncated or damaged files. */
function metaOf(bytes: Uint8Array): ReturnType<typeof imageMeta> | undefined {
  try {
    return imageMeta(bytes);
  } catch {
    return undefined;
  }
}

const NOTHING = Buffer.alloc(0);
const EXIF = "Exif\0\0";
const [START, EXIF_MARKER, IMAGE_END, SCAN] = [0xd8, 0xe1, 0xd9, 0xda];

/** A size that comes later is not found. A colour profile has up to 16 MiB. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Looks for the size of a JPEG while it passes. The size comes after colour profiles, previews and metadata, which may be many megabytes. Only
 * the orientation and the size are held in memory.
 */
export class JpegHead {
  readonly #kept: Buffer[] = [];
  #held: Buffer = NOTHING;
  /** Bytes of a segment that is not needed. */
  #skip = 0;
  #hasExif = false;
  #isRead = false;
  #seen = 0;

  async *watch(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of source) {
      if (!this.#isRead) this.#take(chunk);
      this.#seen += chunk.length;
      if (this.#seen > MOST_BYTES) this.#end();
      yield chunk;
    }
  }

  dimensions(): ImageDimensions | undefined {
    return imageDimensions(Buffer.concat(this.#kept));
  }

  #take(chunk: Uint8Array): void {
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    const rest = chunk.subarray(skipped);
    let bytes =
      this.#held.length === 0 ? Buffer.from(rest.buffer, rest.byteOffset, rest.length) : Buffer.concat([this.#held, rest]);
    while (!this.#isRead) {
      const length = this.#lengthOf(bytes);
      if (length === undefined) break;
      this.#skip = Math.max(0, length - bytes.length);
      bytes = bytes.subarray(length);
    }
    // A copy: the chunk may belong to a pool that is used again.
    if (!this.#isRead) this.#held = Buffer.from(bytes);
  }

  /** Length of the first marker with its segment, which is kept if it is needed. Undefined if more bytes must arrive first. */
  #lengthOf(bytes: Buffer): number | undefined {
    if (bytes.length < 2) return undefined;
    const [first, marker] = [bytes[0], bytes[1]!];
    if (first !== 0xff || marker === IMAGE_END || marker === SCAN) return this.#end();
    if (marker === 0xff) return fillBytes(bytes);
    // Only one: a file of nothing else would be held as millions of pieces.
    if (marker === START) return this.#kept.length === 0 ? this.#keep(bytes, 2) : this.#end();
    // Markers without a segment.
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) return 2;
    if (bytes.length < 4) return undefined;
    const length = 2 + bytes.readUInt16BE(2);
    if (length < 4) return this.#end();
    if (isFrame(marker)) {
      if (bytes.length < length) return undefined;
      this.#keep(bytes, length);
      return this.#end();
    }
    if (marker !== EXIF_MARKER || this.#hasExif || length < 4 + EXIF.length) return length;
    if (bytes.length < 4 + EXIF.length) return undefined;
    if (bytes.toString("latin1", 4, 4 + EXIF.length) !== EXIF) return length;
    if (bytes.length < length) return undefined;
    this.#hasExif = true;
    return this.#keep(bytes, length);
  }

  #keep(bytes: Buffer, length: number): number {
    this.#kept.push(Buffer.from(bytes.subarray(0, length)));
    return length;
  }

  #end(): undefined {
    this.#isRead = true;
    this.#held = NOTHING;
  }
}

/** How many bytes may stand before a marker. The last 0xff belongs to the marker. */
function fillBytes(bytes: Buffer): number {
  let at = 1;
  while (bytes[at] === 0xff) at++;
  return at - 1;
}

/** SOF0 to SOF15, without DHT, JPG and DAC. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
