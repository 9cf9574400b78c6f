/** A type of media that can be uploaded. */
export interface MediaType {
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video";
  /** The usual one, without a dot: that of a `mediaId`. */
  readonly extension: string;
}

interface KnownMediaType extends MediaType {
  /** What its bytes may be recognised as, in file-type's names. */
  readonly formats: readonly string[];
  /** Its streams may begin anywhere, so that nothing can be asked of the first bytes but that they are nothing else. */
  readonly unsigned?: true;
  /** An ID3 tag may stand before it. */
  readonly tagged?: true;
  /** Another extension that media of it were given, before there were owners. */
  readonly formerly?: string;
}

// The layers of MPEG audio share one MIME type (RFC 3003).
const MPEG_AUDIO = {
  kind: "audio",
  extension: "mp3",
  formerly: "mpga",
  formats: ["mp3", "mp2", "mp1"],
  unsigned: true,
  tagged: true,
} as const;

const known: readonly KnownMediaType[] = [
  { mimeType: "image/jpeg", kind: "image", extension: "jpg", formerly: "jpeg", formats: ["jpg"] },
  { mimeType: "image/png", kind: "image", extension: "png", formats: ["png", "apng"] },
  { mimeType: "image/gif", kind: "image", extension: "gif", formats: ["gif"] },
  { mimeType: "image/webp", kind: "image", extension: "webp", formats: ["webp"] },
  { mimeType: "audio/mpeg", ...MPEG_AUDIO },
  { mimeType: "audio/mp3", ...MPEG_AUDIO },
  // Opus has no file format of its own: in files it stands in Ogg (RFC 7845).
  { mimeType: "audio/opus", kind: "audio", extension: "opus", formats: ["opus"] },
  { mimeType: "audio/aac", kind: "audio", extension: "aac", formats: ["aac"], unsigned: true, tagged: true },
  { mimeType: "audio/flac", kind: "audio", extension: "flac", formats: ["flac"], tagged: true },
  { mimeType: "audio/wav", kind: "audio", extension: "wav", formats: ["wav"] },
  // Every codec but those of films; `ogx` is one that file-type doesn't know.
  { mimeType: "audio/ogg", kind: "audio", extension: "ogg", formerly: "oga", formats: ["ogg", "oga", "opus", "spx", "ogx"] },
  // MP4 that holds sound alone is MP4, whatever its brand. QuickTime, 3GPP and HEIF are built alike, and others.
  {
    mimeType: "video/mp4",
    kind: "video",
    extension: "mp4",
    formats: ["mp4", "m4v", "m4a", "m4b", "m4p", "f4v", "f4p", "f4a", "f4b"],
  },
  { mimeType: "video/webm", kind: "video", extension: "webm", formats: ["webm"] },
];

/** All of them (specification 4.5, rule 4); of two with one extension the usual one comes first. */
export const MEDIA_TYPES: readonly MediaType[] = known.map(toMediaType);

/** The type that a Content-Type declares, whatever its case and its parameters; undefined where it is no type of media. */
export function mediaTypeOf(declared: string): MediaType | undefined {
  const mimeType = declared.split(";", 1)[0]?.trim().toLowerCase();
  return MEDIA_TYPES.find((type) => type.mimeType === mimeType);
}

/** The type of a media file by its extension without a dot, in any case, including extensions of older media. Undefined for other extensions. */
export function mediaTypeOfExtension(extension: string): MediaType | undefined {
  const wanted = extension.toLowerCase();
  const found = known.find((type) => type.extension === wanted || type.formerly === wanted);
  return found && toMediaType(found);
}

/** As many of a file's first bytes as `fitsSignature` looks at. */
export const SIGNATURE_BYTES = 4100;

/**
 * Whether a file that is declared as `type` can be one by its first bytes (open points 6): `SIGNATURE_BYTES` of them, or the whole file
 * where it is shorter. A format with a signature must have it. MPEG audio and AAC have none: they pass, unless their bytes are another
 * format's or a text's. Markup passes as nothing. Never throws.
 */
export async function fitsSignature(type: MediaType, head: Uint8Array): Promise<boolean> {
  const rules = known.find(({ mimeType }) => mimeType === type.mimeType);
  const start = head.subarray(0, SIGNATURE_BYTES);
  if (!rules || isMarkup(start)) return false;
  const tag = id3TagBytes(start);
  // file-type skips ID3 tags before any content, but a PNG after such a tag is not a valid PNG.
  if (tag > 0 && !rules.tagged) return false;
  if (rules.mimeType === "image/gif" && !isGif(start)) return false;
  const format = tag > start.length ? undefined : await formatOf(start);
  if (format !== undefined) return rules.formats.includes(format);
  return rules.unsigned === true && !isText(start);
}

function toMediaType({ mimeType, kind, extension }: KnownMediaType): MediaType {
  return { mimeType, kind, extension };
}

async function formatOf(bytes: Uint8Array): Promise<string | undefined> {
  // Large, and needed by uploads only: a start does not wait for it.
  const { fileTypeFromBuffer } = await import("file-type");
  try {
    return (await fileTypeFromBuffer(bytes))?.ext;
  } catch {
    // Nothing is known that makes it throw, and what does is no media.
    return "unreadable";
  }
}

/** Length of the ID3 tag that a file begins with, header included; 0 where it begins with none. */
function id3TagBytes(bytes: Uint8Array): number {
  const [i, d, three, , , , ...size] = bytes.subarray(0, 10);
  if (i !== 0x49 || d !== 0x44 || three !== 0x33) return 0;
  return 10 + size.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
}

/** file-type is content with the first three letters, which texts can begin with. */
function isGif(bytes: Uint8Array): boolean {
  return /^GIF8[79]a/.test(latin1(bytes.subarray(0, 6)));
}

/** Begins with `<`, or with the mark of a text: HTML, SVG and XML in UTF-8 or UTF-16. */
function isMarkup(bytes: Uint8Array): boolean {
  return /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe|(?:\0?[\t\n\f\r ])*\0?<)/.test(latin1(bytes));
}

/** Holds no byte that texts don't have, as browsers decide it. */
function isText(bytes: Uint8Array): boolean {
  return !/[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(latin1(bytes));
}

/** One character per byte. */
function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
