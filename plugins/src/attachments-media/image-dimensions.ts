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
