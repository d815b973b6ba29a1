/**
 * Patterns for sh of files in /dev: accelerators that NVIDIA's driver does not list. /dev/dri is left out, because this driver makes
 * files there, too.
 */
export const OTHER_ACCELERATORS = ['kfd', 'accel*', 'dxg', 'nvhost*', 'nvgpu*', 'davinci[0-9]*', 'hl[0-9]*']
