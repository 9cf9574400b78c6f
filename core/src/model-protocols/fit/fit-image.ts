import { imageMeta } from "image-meta";
import { dataLength } from "../long-data.ts";

/** The types that both protocols accept, by the beginnings of their base64 texts. */
const SIGNATURES: readonly (readonly [beginning: RegExp, mediaType: string])[] = [
  [/^iVBORw0KGgo/, "image/png"],
  [/^\/9j\//, "image/jpeg"],
  [/^R0lGOD/, "image/gif"],
  [/^UklGR.{7,8}(?:XRUJQ|V0VCU)/, "image/webp"],
];

/** Larger images are refused, with the whole conversation: anthropics/claude-code#28279. platform.claude.com/docs, Vision: 5 MB, 8,000 pixels. */
const IMAGE_BYTES = 5 * 1024 * 1024;
/** The most pixels of a side of an image in Messages. */
export const MESSAGES_IMAGES = 8_000;
/** The same with many images: "exceeds the dimension limit for many-image requests (2000px)" (anthropics/claude-code#49720). */
export const MESSAGES_MANY_IMAGES = 2_000;

/** Base64 characters in which the size of an image is looked for. */
const HEAD_CHARACTERS = 64 * 1024;

/** What is sent of an image: its true type, or the note that replaces it. */
export type FittedImage = { readonly mediaType: string } | { readonly note: string };

/**
 * Checks an image by its bytes. Providers refuse a declared type that does not fit the bytes (BerriAI/litellm#24900), other types such as SVG,
 * and large images. `pixels`: the provider has the limits of Messages, and this one for each side. An image of an unknown size passes.
 */
export function fitImage(declared: string, base64: string, pixels?: number): FittedImage {
  const found = SIGNATURES.find(([beginning]) => beginning.test(base64.slice(0, 32)));
  if (!found) return { note: imageNote(/^image\/[\w.+-]{1,64}$/.test(declared) ? declared : "an unknown type") };
  const [, mediaType] = found;
  if (pixels === undefined) return { mediaType };
  if (dataLength(base64) * 0.75 > IMAGE_BYTES)
    return { note: `[an image, ${mediaType}, that has too many bytes to be shown here]` };
  const size = sizeOf(base64);
  if (size && Math.max(size.width, size.height) > pixels)
    return { note: `[an image, ${mediaType}, of ${size.width} × ${size.height} pixels, that is too large to be shown here]` };
  return { mediaType };
}

/** Stands in place of an image that the model cannot get. */
export function imageNote(mediaType: string): string {
  return `[an image, ${mediaType}, that cannot be shown here]`;
}

function sizeOf(base64: string): { readonly width: number; readonly height: number } | undefined {
  try {
    return imageMeta(Buffer.from(base64.slice(0, HEAD_CHARACTERS), "base64"));
  } catch {
    // A damaged image, or one whose size comes later.
    return undefined;
  }
}
