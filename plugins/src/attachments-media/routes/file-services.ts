import type { Handlers, PendingUploads, ports } from "@portico/core";
import type { AccelRedirect } from "../accel-redirect.ts";
import type { Attachments } from "../attachments.ts";
import type { attachmentsMediaContract } from "../contract.ts";
import type { instanceGuard, signedReadGuard } from "../guards.ts";
import type { MediaFiles } from "../media.ts";
import type { createSignedLinks } from "../signed-links.ts";

/** The services that the routes of this area use. */
export interface FileServices {
  readonly blobs: ports.Blobs;
  readonly accel: AccelRedirect | undefined;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly attachments: Attachments;
  readonly media: MediaFiles;
  readonly links: ReturnType<typeof createSignedLinks>;
  readonly pending: PendingUploads;
}

/** The handlers of this area, by route. */
export type FileHandlers = Handlers<
  typeof attachmentsMediaContract,
  { readonly instance: ReturnType<typeof instanceGuard>; readonly signed: ReturnType<typeof signedReadGuard> }
>;
