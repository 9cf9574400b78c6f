import { resolve } from "node:path";
import { defineAdapter, ports } from "@portico/core";
import type { Driver } from "unstorage";
import { createDocuments } from "./create-documents.ts";
import { driverPlace } from "./unstorage/driver-place.ts";
import { folderPlace } from "./unstorage/folder-place.ts";

export type UnstorageDocumentsOptions = FolderDocumentsOptions | DriverDocumentsOptions;

/** Documents that are files of a folder. */
export interface FolderDocumentsOptions {
  /** What the documents are for: `agents`, `workflows`. */
  readonly id: string;
  /** The folder; it need not be there yet. */
  readonly dir: string;
  /** Most segments of a name that are listed and watched; default: any number. Keeps big folders below out of it. */
  readonly depth?: number;
  /** Milliseconds between two looks where the system cannot tell of changes; default 2,000. */
  readonly pollMs?: number;
}

/** Documents in any other store that unstorage has a driver for. */
export interface DriverDocumentsOptions {
  readonly id: string;
  /** Disposed of when the app closes. */
  readonly driver: Driver;
  /** Milliseconds between two looks, where the driver cannot tell of changes; default 10,000. */
  readonly pollMs?: number;
}

/** Even a system that tells of changes loses some: full queues, network folders, folders mounted into a container. */
const NET_MS = 30_000;

/**
 * Documents on unstorage. Those in a folder are written whole and durably, and a write whose base changed is refused up to the instant
 * between two system calls. With another driver a write is as atomic and as durable as that driver's `setItem`, and a change that another
 * program makes between the last look and the write is overwritten.
 */
export const unstorageDocuments = defineAdapter({
  name: "documents/unstorage",
  port: ports.documents,
  needs: { clock: ports.clock },
  open({ clock }, options: UnstorageDocumentsOptions, scope) {
    if ("dir" in options) {
      const { id, dir, depth = Infinity, pollMs = 2000 } = options;
      return createDocuments(id, folderPlace(resolve(dir), depth), { clock, times: { netMs: NET_MS, pollMs }, scope });
    }
    const { id, driver, pollMs = 10_000 } = options;
    return createDocuments(id, driverPlace(driver), { clock, times: { netMs: NET_MS, pollMs }, scope });
  },
});
