/** A type of media that can be uploaded. */
export interface MediaType {
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video";
  /** The usual extension, without a dot. A `mediaId` ends with it. */
  readonly extension: string;
}

interface KnownMediaType extends MediaType {
  /** The names of file-type for bytes of this type. */
  readonly formats: readonly string[];
  /** Streams of this type can begin with any bytes. So the first bytes are only checked not to be of another type. */
  readonly unsigned?: true;
  /** An ID3 tag may precede the content. */
  readonly tagged?: true;
  /** Another extension of this type that old media without owners can have. */
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
  // Opus has no own file format. Opus files are Ogg files (RFC 7845).
  { mimeType: "audio/opus", kind: "audio", extension: "opus", formats: ["opus"] },
  { mimeType: "audio/aac", kind: "audio", extension: "aac", formats: ["aac"], unsigned: true, tagged: true },
  { mimeType: "audio/flac", kind: "audio", extension: "flac", formats: ["flac"], tagged: true },
  { mimeType: "audio/wav", kind: "audio", extension: "wav", formats: ["wav"] },
  // All codecs except those of video. file-type returns `ogx` for codecs that it does not know.
  { mimeType: "audio/ogg", kind: "audio", extension: "ogg", formerly: "oga", formats: ["ogg", "oga", "opus", "spx", "ogx"] },
  // MP4 with only audio is accepted with any brand. QuickTime, 3GPP and HEIF have the same structure, but are different formats.
  {
    mimeType: "video/mp4",
    kind: "video",
    extension: "mp4",
    formats: ["mp4", "m4v", "m4a", "m4b", "m4p", "f4v", "f4p", "f4a", "f4b"],
  },
  { mimeType: "video/webm", kind: "video", extension: "webm", formats: ["webm"] },
];

/** All media types (specification 4.5, rule 4). Of two types with the same extension, the usual one comes first. */
export const MEDIA_TYPES: readonly MediaType[] = known.map(toMediaType);

/** The media type of a Content-Type. Case and parameters are ignored. Undefined if it is not an accepted media type. */
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

/** The number of first bytes that `fitsSignature` reads. */
export const SIGNATURE_BYTES = 4100;

/**
 * Whether a file that is declared as `type` can be of this type (open points 6). `head` has its first `SIGNATURE_BYTES`, or the whole file if
 * it is shorter. A format with a signature must have it. MPEG audio and AAC have no signature. They are accepted unless the bytes belong to
 * another format or are text. HTML and XML never match any media type. Never throws.
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
  // The library is large and only uploads need it, so it is not loaded at the start.
  const { fileTypeFromBuffer } = await import("file-type");
  try {
    return (await fileTypeFromBuffer(bytes))?.ext;
  } catch {
    // No input is known that makes file-type throw. A file that does is not media.
    return "unreadable";
  }
}

/** Length of the ID3 tag at the beginning of a file, including its header; 0 if there is no tag. */
function id3TagBytes(bytes: Uint8Array): number {
  const [i, d, three, , , , ...size] = bytes.subarray(0, 10);
  if (i !== 0x49 || d !== 0x44 || three !== 0x33) return 0;
  return 10 + size.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
}

/** file-type checks only the first three letters, and texts can begin with these. */
function isGif(bytes: Uint8Array): boolean {
  return /^GIF8[79]a/.test(latin1(bytes.subarray(0, 6)));
}

/** Begins with `<` or a byte order mark: HTML, SVG and XML in UTF-8 or UTF-16. */
function isMarkup(bytes: Uint8Array): boolean {
  return /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe|(?:\0?[\t\n\f\r ])*\0?<)/.test(latin1(bytes));
}

/** Contains no byte that browsers take for binary data. */
function isText(bytes: Uint8Array): boolean {
  return !/[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(latin1(bytes));
}

/** One character per byte. */
function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
