import { resolve } from "node:path";
import { defineAdapter, ports } from "@portico/core";
import type { Driver } from "unstorage";
import { createDocuments } from "./create-documents.ts";
import { driverPlace } from "./unstorage/driver-place.ts";
import { folderPlace } from "./folder-place.ts";
import { loadDriver, type NamedDriver } from "./unstorage/load-driver.ts";

/** Options of `unstorageDocuments`: a folder, or a driver of unstorage, itself or by its name. */
export type UnstorageDocumentsOptions = FolderDocumentsOptions | DriverDocumentsOptions | NamedDriverDocumentsOptions;

/** Documents as files of a folder. */
export interface FolderDocumentsOptions {
  /** ID of the source: `agents`, `workflows`. */
  readonly id: string;
  /** The folder. It is created if it is missing. */
  readonly dir: string;
  /** Maximum segments of a name that is listed and watched. Default: any number. Excludes large folders deeper down. */
  readonly depth?: number;
  /** Milliseconds between two checks if the system cannot report changes. Default: 2,000. */
  readonly pollMs?: number;
}

/** Documents in any other store with a driver of unstorage. */
export interface DriverDocumentsOptions {
  readonly id: string;
  /** Disposed of when the app closes. */
  readonly driver: Driver;
  /** Milliseconds between two checks if the driver cannot report changes. Default: 10,000. */
  readonly pollMs?: number;
}

/** The same, with a driver that is loaded by its name when the app opens. */
export interface NamedDriverDocumentsOptions extends NamedDriver, Omit<DriverDocumentsOptions, "driver"> {}

/** Even a system that reports changes loses some: full queues, network folders, folders mounted into a container. */
const NET_MS = 30_000;

/**
 * Documents on unstorage. In a folder, documents are written whole and durably, and a write whose base has changed is refused,
 * also if another process with the same folder has changed it. Only a change by a person between the last two system calls is overwritten. With another driver, a write is as atomic and as durable as that
 * driver's `setItem`, and a change by another program between the last check and the write is overwritten.
 */
export const unstorageDocuments = defineAdapter({
  name: "documents/unstorage",
  port: ports.documents,
  needs: { clock: ports.clock },
  async open({ clock }, options: UnstorageDocumentsOptions, scope) {
    if ("dir" in options) {
      const { id, dir, depth = Infinity, pollMs = 2000 } = options;
      return createDocuments(id, folderPlace(resolve(dir), depth), { clock, times: { netMs: NET_MS, pollMs }, scope });
    }
    const { id, pollMs = 10_000 } = options;
    const driver = typeof options.driver === "string" ? await loadDriver(options as NamedDriver) : options.driver;
    return createDocuments(id, driverPlace(driver), { clock, times: { netMs: NET_MS, pollMs }, scope });
  },
});
