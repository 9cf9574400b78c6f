import { writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, createPendingUploads, ports } from "@portico/core";
import { type Attachment, attachmentKey, createAttachments } from "../../../plugins/src/attachments-media/attachments.ts";
import { createMedia, type Media, mediaKey } from "../../../plugins/src/attachments-media/media.ts";

// Removes files beside the service that stores them, in the same way as the service's own retention. The retention itself would keep these
// files, because they are younger than an hour. The process writes each key to standard output before its removal begins. The test kills it.
const [dataDir = ""] = process.argv.slice(2);
const app = await createApp({
  name: "remove-files",
  adapters: [...sqliteStore({ dir: join(dataDir), ports: [ports.records, ports.blobs] }), systemClock(), memoryTelemetry({})],
});
const given = { records: app.port(ports.records), blobs: app.port(ports.blobs) };
const pending = createPendingUploads({ ...given, clock: app.port(ports.clock), log: app.port(ports.telemetry).log });
const [attachments, media] = [createAttachments(given.records), createMedia(given)];

const isChosen = () => Math.random() < 0.5;
const begin = (key: string) => writeSync(1, `${key}\n`);
const removeAttachment = (found: Attachment) => {
  const key = attachmentKey(found.attachmentId);
  begin(key);
  return pending.remove(key, (notes) => attachments.remove(found, () => true, [notes]));
};
const removeMedia = (found: Media) => {
  const key = mediaKey(found.mediaId);
  begin(key);
  return pending.remove(key, (notes) => media.remove(found, () => true, [notes]));
};

for (;;) {
  const now = new Date().toISOString();
  for await (const page of attachments.uploadedBefore(now))
    for (const found of page) if (isChosen()) await removeAttachment(found);
  for await (const page of media.uploadedBefore(now)) for (const found of page) if (isChosen()) await removeMedia(found);
  await sleep(20);
}
