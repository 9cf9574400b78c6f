import { imageMeta } from "image-meta";

export interface ImageDimensions {
  readonly width: number;
  readonly height: number;
}

/**
 * As many of an image's first bytes as `imageDimensions` looks at. A JPEG has its size behind its metadata and its thumbnail: 64 KiB each,
 * and there can be several.
 */
export const IMAGE_HEAD_BYTES = 256 * 1024;

/** In image-meta's names, the formats of media (specification 4.5, rule 4). */
const FORMATS: readonly string[] = ["jpg", "png", "gif", "webp"];

/**
 * Width and height in pixels as a viewer shows the image, so that a JPEG that says it is to be turned has them turned. They are read from
 * the first `IMAGE_HEAD_BYTES`, or the whole file where it is shorter, and no pixel is decoded. Undefined where they cannot be told, and for
 * what is not a JPEG, PNG, GIF or WebP. Never throws.
 */
export function imageDimensions(head: Uint8Array): ImageDimensions | undefined {
  const found = metaOf(head.subarray(0, IMAGE_HEAD_BYTES));
  // image-meta refuses invalid sizes, except a height of 0.
  if (!found || !FORMATS.includes(found.type ?? "") || found.height === 0) return undefined;
  const { width, height, orientation = 1 } = found;
  // 5 to 8 of EXIF lie on their side.
  const isTurned = orientation >= 5 && orientation <= 8;
  return isTurned ? { width: height, height: width } : { width, height };
}

/** Undefined where image-meta throws: for what it does not know, and for what is cut or damaged. */
function metaOf(bytes: Uint8Array): ReturnType<typeof imageMeta> | undefined {
  try {
    return imageMeta(bytes);
  } catch {
    return undefined;
  }
}
