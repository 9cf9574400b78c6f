import { fileTypeFromBuffer } from "file-type";

/** One of the types that media may have (specification 4.5, rule 4). */
export interface MediaType {
  readonly kind: "image" | "audio" | "video";
  readonly mimeType: string;
  /** The usual one, of which a mediaId is made. */
  readonly extension: string;
  /** What the first bytes say, in the words of the library; a file of which they say nothing passes where `mayBeUnknown`. */
  readonly seen: readonly string[];
  readonly mayBeUnknown?: true;
}

const OGG = ["audio/ogg", "audio/ogg; codecs=opus", "application/ogg"];

export const MEDIA_TYPES: readonly MediaType[] = [
  { kind: "image", mimeType: "image/jpeg", extension: "jpg", seen: ["image/jpeg"] },
  { kind: "image", mimeType: "image/png", extension: "png", seen: ["image/png", "image/apng"] },
  { kind: "image", mimeType: "image/gif", extension: "gif", seen: ["image/gif"] },
  { kind: "image", mimeType: "image/webp", extension: "webp", seen: ["image/webp"] },
  // A frame may begin anywhere, behind tags of any length.
  { kind: "audio", mimeType: "audio/mpeg", extension: "mp3", seen: ["audio/mpeg"], mayBeUnknown: true },
  { kind: "audio", mimeType: "audio/mp3", extension: "mp3", seen: ["audio/mpeg"], mayBeUnknown: true },
  { kind: "audio", mimeType: "audio/opus", extension: "opus", seen: OGG },
  { kind: "audio", mimeType: "audio/aac", extension: "aac", seen: ["audio/aac"], mayBeUnknown: true },
  { kind: "audio", mimeType: "audio/flac", extension: "flac", seen: ["audio/flac", "audio/x-flac"] },
  { kind: "audio", mimeType: "audio/wav", extension: "wav", seen: ["audio/wav", "audio/vnd.wave"] },
  { kind: "audio", mimeType: "audio/ogg", extension: "ogg", seen: [...OGG, "audio/ogg; codecs=flac"] },
  // What holds sound alone has other brands, and is played by the same players.
  { kind: "video", mimeType: "video/mp4", extension: "mp4", seen: ["video/mp4", "audio/mp4", "audio/x-m4a", "video/x-m4v"] },
  { kind: "video", mimeType: "video/webm", extension: "webm", seen: ["video/webm"] },
];

/** What a part says of itself, where media may be that; parameters count for nothing. */
export function mediaTypeOf(declared: string): MediaType | undefined {
  const essence = declared.split(";", 1)[0]!.trim().toLowerCase();
  return MEDIA_TYPES.find(({ mimeType }) => mimeType === essence);
}

/** What media of this extension are. */
export function mediaTypeOfExtension(extension: string): MediaType | undefined {
  return MEDIA_TYPES.find((type) => type.extension === extension);
}

/** Whether the first bytes of a file do not speak against what it says that it is (open points 6). */
export async function fitsSignature(type: MediaType, head: Uint8Array): Promise<boolean> {
  const found = await fileTypeFromBuffer(head).catch(() => undefined);
  if (found) return type.seen.includes(found.mime);
  return type.mayBeUnknown === true && !looksLikeMarkup(head);
}

/** What a browser could take for a page, whatever it is called. */
function looksLikeMarkup(head: Uint8Array): boolean {
  const text = Buffer.from(head.subarray(0, 1024))
    .toString("latin1")
    .replace(/^\u00ef\u00bb\u00bf/, "");
  return /^\s*<[a-z!?/]/i.test(text);
}
