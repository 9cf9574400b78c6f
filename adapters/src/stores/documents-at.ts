import { resolve } from "node:path";
import type { ports } from "@portico/core";
import { createReading } from "../documents/create-documents.ts";
import type { DocumentPlace } from "../documents/document-place.ts";
import { driverPlace } from "../documents/unstorage/driver-place.ts";
import { folderPlace } from "../documents/folder-place.ts";
import { loadDriver, type NamedDriver } from "../documents/unstorage/load-driver.ts";

/** Where documents are kept: in a folder, or in the store of a driver of unstorage. */
export type DocumentsAt = { readonly dir: string } | NamedDriver;

/** Documents that are read without an app. */
export interface DocumentReading extends Pick<ports.Documents, "read" | "list"> {
  close(): Promise<void>;
}

/** Opens documents to be read without an app: for tools that check them. Throws DocumentsUnavailable. */
export async function openReading(id: string, at: DocumentsAt, depth: number): Promise<DocumentReading> {
  const place: DocumentPlace = "dir" in at ? folderPlace(resolve(at.dir), depth) : driverPlace(await loadDriver(at));
  return { ...createReading(id, place), close: async () => void (await place.close?.()) };
}
