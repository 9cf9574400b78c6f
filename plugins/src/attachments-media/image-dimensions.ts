import { imageSize } from "image-size";

/** Width and height of an image, read in the head of its file and never decoded; undefined where they cannot be told. */
export function imageDimensions(head: Uint8Array): { readonly width: number; readonly height: number } | undefined {
  try {
    const { width, height } = imageSize(head);
    return isLength(width) && isLength(height) ? { width, height } : undefined;
  } catch {
    return undefined;
  }
}

function isLength(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
