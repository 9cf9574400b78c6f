import { sizeOf } from "../../../blocks/size-of.ts";
import type { TurnImage } from "../conversation.ts";

/** Most providers refuse larger images. */
export const IMAGE_BYTES = 5 * 1000 * 1000;
/** Images of one message. */
export const MOST_IMAGES = 20;
/** Both protocols take these. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;

/** Reads a file. Returns a sentence if it cannot be sent. */
export async function readImage(file: File): Promise<TurnImage | string> {
  if (!IMAGE_TYPES.some((type) => type === file.type)) return `${file.name} is not a PNG, JPEG, GIF or WebP image`;
  if (file.size > IMAGE_BYTES) return `${file.name} is larger than ${sizeOf(IMAGE_BYTES)}`;
  try {
    const base64 = await toBase64(file);
    const preview = URL.createObjectURL(file);
    return { name: file.name, mediaType: file.type, bytes: file.size, base64, preview };
  } catch {
    return `${file.name} cannot be read`;
  }
}

/** Releases the memory of its preview. */
export function closeImage({ preview }: TurnImage): void {
  URL.revokeObjectURL(preview);
}

/** `data:image/png;base64,` is cut off. */
function toBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve((reader.result as string).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(reader.error!));
    reader.readAsDataURL(file);
  });
}
