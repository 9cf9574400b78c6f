const MEBIBYTE = 1024 * 1024;

/** Bytes of one attachment (specification 4.5). */
export const ATTACHMENT_BYTES = 20 * MEBIBYTE;

/** Attachments of one user (specification 4.5). */
export const ATTACHMENTS_PER_USER = 256;
/** Bytes of all attachments of one user (specification 4.5). */
export const ATTACHMENT_BYTES_PER_USER = 512 * MEBIBYTE;

/** Bytes of one media file (specification 4.5). */
export const MEDIA_BYTES = 2048 * MEBIBYTE;

/** Bytes of a multipart body in addition to its file: boundaries, and the headers of the part. */
export const UPLOAD_ENVELOPE_BYTES = 64 * 1024;

/** Media of one request for links (specification 4.5). */
export const LINKED_MEDIA = 100;

/** Records of media that are kept in memory. They take less than a megabyte. */
export const HELD_MEDIA = 1000;

/** How long a signed link is valid (specification 4.5). */
export const LINK_SECONDS = 5 * 60;
