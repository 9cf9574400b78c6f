/** Maximum bytes of one file of a run, if no setting says otherwise. */
export const FILE_BYTES = 100 * 1024 * 1024;
/** Maximum bytes of all files of a run, if no setting says otherwise. */
export const RUN_FILES_BYTES = 1024 * 1024 * 1024;
