// What programs that upload and show files share with the service. It runs in browsers.
export { attachmentOf } from "./file-reference.ts";
export { ATTACHMENT_BYTES, ATTACHMENT_BYTES_PER_USER, ATTACHMENTS_PER_USER, LINKED_MEDIA, MEDIA_BYTES } from "./limits.ts";
