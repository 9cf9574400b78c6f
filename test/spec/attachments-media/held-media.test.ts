import { systemClock } from "@portico/adapters/clock/system";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import type { ports } from "@portico/core";
import { createMedia, type Media } from "../../../plugins/src/attachments-media/media.ts";
import { expect, it, onTestFinished } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

const MEDIA: Media = {
  mediaId: "00000000-0000-4000-8000-000000000000.png",
  userId: "owner",
  type: "image",
  name: "tea.png",
  mimeType: "image/png",
  size: 3,
  createdAt: "2030-01-01T00:00:00.000Z",
};

it("asks the store once for media that is read again and again, and again for what was missing", async () => {
  const blobs = await openAdapter(memoryBlobs(), [systemClock()]);
  const records = await openAdapter(memoryRecords());
  onTestFinished(async () => {
    await records.close();
    await blobs.close();
  });
  const asked: string[] = [];
  const media = createMedia({ records: listening(records.port, asked), blobs: blobs.port });

  expect(await media.find(MEDIA.mediaId)).toBeUndefined();
  await media.add(MEDIA, []);
  for (let time = 0; time < 3; time++) expect(await media.find(MEDIA.mediaId)).toEqual(MEDIA);
  expect(asked).toEqual([MEDIA.mediaId, MEDIA.mediaId]);
});

/** The same records, with every id that a collection is asked for in `asked`. */
function listening(records: ports.Records, asked: string[]): ports.Records {
  return {
    ...records,
    collection<T extends object>(spec: ports.CollectionSpec) {
      const collection = records.collection<T>(spec);
      const get = (id: string) => {
        asked.push(id);
        return collection.get(id);
      };
      return { ...collection, get };
    },
  };
}
