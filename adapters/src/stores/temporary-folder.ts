/** For programs that write large files in several steps, and leave nothing behind after a kill. */
export { openTemporaryFolder, type TemporaryFolder } from "../blobs/files/temporary-folder.ts";
