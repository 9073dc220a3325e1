// What a driver says of a lost device. Streams are not used: they look up facets in the process's locale, which crashes
// where the process has a second C++ library, as some drivers and layers bring.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// The largest number of addresses that an error names.
constexpr uint32_t kMostAddresses = 4;

const char* access_of(VkDeviceFaultAddressTypeEXT type) {
  switch (type) {
    case VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT:
      return "a read at ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT:
      return "a write at ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT:
      return "code at ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_NONE_EXT:
      return nullptr;
    default:
      return "an instruction at ";
  }
}

}  // namespace

std::string VulkanDevice::fault() const {
  if (vk_.vkGetDeviceFaultInfoEXT == nullptr) return "";
  VkDeviceFaultCountsEXT counts{VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
  if (vk_.vkGetDeviceFaultInfoEXT(device_, &counts, nullptr) != VK_SUCCESS) return "";
  std::vector<VkDeviceFaultAddressInfoEXT> addresses(counts.addressInfoCount);
  std::vector<VkDeviceFaultVendorInfoEXT> vendor(counts.vendorInfoCount);
  std::vector<char> binary(counts.vendorBinarySize);
  VkDeviceFaultInfoEXT info{VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT};
  info.pAddressInfos = addresses.data();
  info.pVendorInfos = vendor.data();
  info.pVendorBinaryData = binary.empty() ? nullptr : binary.data();
  if (vk_.vkGetDeviceFaultInfoEXT(device_, &counts, &info) < 0) return "";
  std::string text = std::string(" (the driver says: ") + info.description;
  for (uint32_t index = 0; index < std::min(counts.addressInfoCount, kMostAddresses); ++index) {
    const VkDeviceFaultAddressInfoEXT& one = addresses[index];
    const char* const access = access_of(one.addressType);
    if (access == nullptr) continue;
    // The address is known to a multiple of the precision, a power of two.
    const VkDeviceAddress precision = std::max<VkDeviceSize>(1, one.addressPrecision);
    char range[64];
    std::snprintf(range, sizeof range, "0x%" PRIx64 " to 0x%" PRIx64, one.reportedAddress & ~(precision - 1),
                  one.reportedAddress | (precision - 1));
    text += std::string("; ") + access + range;
  }
  for (uint32_t index = 0; index < std::min(counts.vendorInfoCount, kMostAddresses); ++index)
    text += std::string("; ") + vendor[index].description;
  return text + ")";
}

}  // namespace triton_spirv
