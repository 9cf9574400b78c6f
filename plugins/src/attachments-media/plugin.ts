import { callerGuard, createPendingUploads, definePlugin, instanceScheme, PENDING_SWEEP_MS, ports } from "@portico/core";
import { createAccelRedirect } from "./answer-media.ts";
import { createAttachments } from "./attachments.ts";
import { attachmentsMediaConfig } from "./config.ts";
import { attachmentsMediaContract } from "./contract.ts";
import { fileErrors } from "./errors.ts";
import { signedReadGuard } from "./guards.ts";
import { createMedia } from "./media.ts";
import { downloadAttachment, uploadAttachment } from "./attachment-routes.ts";
import type { FileServices } from "./file-services.ts";
import { mediaLinks, readMedia, uploadMedia } from "./media-routes.ts";
import { createSignedLinks } from "./signed-links.ts";
import { createStoredFiles, createSweepFiles, FILES_SWEEP } from "./stored-files.ts";
import { userFiles } from "./user-files.ts";

/** General files, media, and short-lived links to media (specification 4.5). */
export const attachmentsMedia = definePlugin({
  name: "attachments-media",
  summary: "Files that queries refer to, and links to pictures, sounds and videos.",
  config: attachmentsMediaConfig,
  needs: {
    blobs: ports.blobs,
    records: ports.records,
    engine: ports.engine,
    signing: ports.signing,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
  },
  contract: attachmentsMediaContract,
  security: { instance: instanceScheme },
  capabilities: () => ["media", "attachments"],
  provides: () => [userFiles()],
  guards: ({ identity }) => ({ instance: callerGuard(identity, fileErrors), signed: signedReadGuard(identity) }),
  setup(given, settings, scope) {
    const { blobs, records, engine, clock, ids, telemetry } = given;
    const pending = createPendingUploads({ records, blobs, clock, log: telemetry.log });
    const [attachments, media] = [createAttachments(records), createMedia(given)];
    const files = createStoredFiles({ records, blobs, clock, log: telemetry.log });
    // Also runs at the start, so that abandoned bytes are removed even if no process runs for an hour.
    engine.chore("sweep-pending-uploads", { everyMs: PENDING_SWEEP_MS }, pending.sweep);
    engine.chore("sweep-files", FILES_SWEEP, createSweepFiles({ attachments, media, files, clock, settings }));
    scope.onReady(() => engine.ready());
    const { accelPrefix } = settings.media;
    const accel = accelPrefix === undefined ? undefined : createAccelRedirect(blobs, accelPrefix);
    if (accelPrefix !== undefined && !accel)
      telemetry.log.warn("The blobs are not files: the service sends media itself, without X-Accel-Redirect");
    const services: FileServices = {
      ...{ blobs, accel, clock, ids, pending, attachments, media },
      links: createSignedLinks(given),
    };
    return {
      uploadAttachment: uploadAttachment(services),
      downloadAttachment: downloadAttachment(services),
      uploadMedia: uploadMedia(services),
      mediaLinks: mediaLinks(services),
      readMedia: readMedia(services),
    };
  },
});
