import { onBeforeUnmount, onMounted, type ShallowRef } from "vue";

/**
 * Opens a dialog above everything. However it goes away, the focus returns to where it was: browsers restore it only for a dialog
 * that is closed before it is removed.
 */
export function useModal(dialog: Readonly<ShallowRef<HTMLDialogElement | null>>): void {
  onMounted(() => dialog.value?.showModal());
  onBeforeUnmount(() => dialog.value?.close());
}
